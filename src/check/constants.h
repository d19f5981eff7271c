// Expressions that are constants, or ask for facts of types: literals, parameters, sizeof, typeinfo, comptime.
#pragma once

#include <string>

#include "check/defines.h"
#include "check/expressions.h"
#include "check/type_names.h"
#include "kernel/kernel.h"

namespace espy::check {

class Constants {
 public:
  Constants(Facts& facts, Reporter& reporter, Expressions& expressions, TypeNames& type_names,
            const spec::Registry& registry, const Defines& defines, kernel::Kernel& kernel, const spec::Config& config)
      : facts_(facts),
        reporter_(reporter),
        expressions_(expressions),
        type_names_(type_names),
        registry_(registry),
        defines_(defines),
        kernel_(kernel),
        config_(config) {}

  TypeId integer(ExprId id, const syntax::IntegerLiteral& node);
  TypeId boolean(ExprId id, const syntax::BoolLiteral& node);
  TypeId string(ExprId id, const syntax::StringLiteral& node);
  // A number if the parameter looks like one, else a string; 0 if it was not given.
  TypeId positional(ExprId id, const syntax::Positional& node);
  TypeId positional_count(ExprId id);
  TypeId size(ExprId id, const syntax::Sizeof& node);
  TypeId offset(ExprId id, const syntax::Offsetof& node);
  // typeinfo(x).NAME
  TypeId type_property(ExprId id, const syntax::Typeinfo& node, const std::string& name, Span name_span);
  TypeId comptime(ExprId id, const syntax::Comptime& node);
  TypeId type_expression(const syntax::TypeExpr& node);

 private:
  // Whether a word has a meaning as a value, apart from constants and arguments.
  bool is_value(const std::string& word) const;
  // Of an expression, or the type itself.
  TypeId operand_type(ExprId operand);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  TypeNames& type_names_;
  const spec::Registry& registry_;
  const Defines& defines_;
  kernel::Kernel& kernel_;
  const spec::Config& config_;
};

}  // namespace espy::check
