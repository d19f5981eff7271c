// Conditions, and expressions whose value comes from one of two branches.
#pragma once

#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/laundering.h"
#include "lower/scope.h"

namespace espy::lower {

class Expressions;
class Statements;

class Branches : Emitter {
 public:
  Branches(ModuleContext& module, Functions& functions, Scope& scope, Conversions& conversions, Laundering& laundering,
           Expressions& expressions, Statements& statements)
      : Emitter(module, functions),
        scope_(scope),
        conversions_(conversions),
        laundering_(laundering),
        expressions_(expressions),
        statements_(statements) {}

  // Branches on a condition, with && and || evaluated lazily.
  void branch_on(ExprId condition, BlockId if_true, BlockId if_false);
  // Not 0 if the operand is true.
  ValueId truth(Operand operand);
  // The value of `&&` and `||`.
  Operand logical(ExprId expr);
  Operand ternary(ExprId expr, const syntax::Ternary& node);
  Operand if_value(ExprId expr, const syntax::If& node);

 private:
  Operand either(TypeId type, ExprId condition, ExprId if_true, ExprId if_false);
  void assign_result(ir::SlotId result, TypeId type, ExprId value);
  ValueId merged_value(TypeId type, ir::SlotId result);
  Operand value_of_branch(TypeId type, ExprId branch);

  Scope& scope_;
  Conversions& conversions_;
  Laundering& laundering_;
  Expressions& expressions_;
  Statements& statements_;
};

}  // namespace espy::lower
