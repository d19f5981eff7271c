// Values of expressions: the recursion over the tree. Each kind of node is lowered by the part that it concerns.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "lower/context_fields.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/memory.h"
#include "lower/scope.h"
#include "lower/variables.h"

namespace espy::lower {

class Access;
class Branches;
class BuiltinCalls;
class FunctionCalls;
class Maps;
class Operators;
class Statements;
class Tuples;

class Expressions : Emitter {
 public:
  Expressions(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Conversions& conversions,
              ContextFields& fields, Variables& variables, Maps& maps, Operators& operators, Access& access,
              Branches& branches, Tuples& tuples, BuiltinCalls& builtins, FunctionCalls& function_calls,
              Statements& statements)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        conversions_(conversions),
        fields_(fields),
        variables_(variables),
        maps_(maps),
        operators_(operators),
        access_(access),
        branches_(branches),
        tuples_(tuples),
        builtins_(builtins),
        function_calls_(function_calls),
        statements_(statements) {}

  // See Lowering for these.
  Operand value(ExprId expr);
  ValueId scalar(ExprId expr);
  // Evaluates `expr`; scalar() gives this value for it within `body`.
  void with_scalar(ExprId expr, const std::function<void()>& body);

 private:
  Operand value_of_node(ExprId expr);
  Operand constant_value(TypeId type, const check::Constant& constant);
  Operand block_value(ExprId expr, const syntax::Block& node);
  Operand context_name(const check::ExprFact& fact, std::string_view name);
  Operand name(ExprId expr, const syntax::Name& node);
  Operand call(ExprId expr, const syntax::Call& node);

  Scope& scope_;
  Memory& memory_;
  Conversions& conversions_;
  ContextFields& fields_;
  Variables& variables_;
  Maps& maps_;
  Operators& operators_;
  Access& access_;
  Branches& branches_;
  Tuples& tuples_;
  BuiltinCalls& builtins_;
  FunctionCalls& function_calls_;
  Statements& statements_;
  std::map<ExprId, ValueId> scalars_;  // see with_scalar()
};

}  // namespace espy::lower
