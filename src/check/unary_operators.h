// Unary operators.
#pragma once

#include "check/expressions.h"
#include "check/map_expressions.h"
#include "check/maps.h"
#include "check/members.h"
#include "check/variables.h"

namespace espy::check {

class UnaryOperators {
 public:
  UnaryOperators(Facts& facts, Reporter& reporter, Expressions& expressions, Variables& variables, Maps& maps,
                 MapExpressions& map_expressions, Members& members)
      : facts_(facts),
        reporter_(reporter),
        expressions_(expressions),
        variables_(variables),
        maps_(maps),
        map_expressions_(map_expressions),
        members_(members) {}

  TypeId unary(ExprId id, const syntax::Unary& node);

 private:
  TypeId increment(ExprId id, const syntax::Unary& node);
  TypeId increment_variable(ExprId id, const syntax::Unary& node);
  TypeId incremented_type(const syntax::Unary& node, TypeId old);
  TypeId dereference(ExprId id, const syntax::Unary& node);
  TypeId address_of(ExprId id, const syntax::Unary& node);
  TypeId bad_operand(ExprId id, const syntax::Unary& node, TypeId operand);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  Variables& variables_;
  Maps& maps_;
  MapExpressions& map_expressions_;
  Members& members_;
};

}  // namespace espy::check
