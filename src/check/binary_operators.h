// Binary operators, and the folding of constants under them.
#pragma once

#include <optional>

#include "check/expressions.h"

namespace espy::check {

class BinaryOperators {
 public:
  BinaryOperators(Facts& facts, Reporter& reporter, Expressions& expressions)
      : facts_(facts), reporter_(reporter), expressions_(expressions) {}

  TypeId binary(ExprId id, const syntax::Binary& node);
  // The type of an arithmetic operation; invalid if it does not work on these types. The expressions may be invalid;
  // where one is a literal, its type adapts to the other operand's.
  TypeId result_type(syntax::BinaryOp op, TypeId left, TypeId right, ExprId left_expr, ExprId right_expr);

 private:
  void use_func_beside(ExprId value, ExprId other);
  TypeId logical(ExprId id, const syntax::Binary& node);
  TypeId comparison(const syntax::Binary& node, TypeId left, TypeId right);
  void warn_if_never(const syntax::Binary& node, TypeId left, TypeId right);
  TypeId arithmetic(const syntax::Binary& node, TypeId left, TypeId right);
  // The type of a constant result, invalid with an error if it overflows; nullopt if the result is not constant.
  std::optional<TypeId> fold_operands(ExprId id, const syntax::Binary& node);
  bool adapts_to_other(ExprId literal) const;
  void adapt_literal(ExprId literal, TypeId other);
  TypeId bad_operands(const syntax::Binary& node, TypeId left, TypeId right);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
};

}  // namespace espy::check
