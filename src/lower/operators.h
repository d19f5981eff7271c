// Unary and binary operators, increments and compound assignments, casts.
#pragma once

#include <optional>

#include "lower/arithmetic.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/laundering.h"
#include "lower/map_elements.h"
#include "lower/memory.h"
#include "lower/reads.h"
#include "lower/scope.h"
#include "lower/variables.h"

namespace espy::lower {

class Access;
class Branches;
class BuiltinCalls;
class Expressions;
class Maps;

class Operators : Emitter {
 public:
  Operators(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Reads& reads,
            Conversions& conversions, Arithmetic& arithmetic, Laundering& laundering, Variables& variables,
            MapElements& elements, Maps& maps, Access& access, Branches& branches, BuiltinCalls& builtins,
            Expressions& expressions)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        reads_(reads),
        conversions_(conversions),
        arithmetic_(arithmetic),
        laundering_(laundering),
        variables_(variables),
        elements_(elements),
        maps_(maps),
        access_(access),
        branches_(branches),
        builtins_(builtins),
        expressions_(expressions) {}

  Operand unary(ExprId expr, const syntax::Unary& node);
  Operand binary(ExprId expr, const syntax::Binary& node);
  Operand cast(ExprId expr, const syntax::Cast& node);
  // ++ and --. Without `is_used`, returns no value.
  Operand step(ExprId expr, const syntax::Unary& node, bool is_used);
  // An assignment with an operator.
  void assign(const syntax::Assign& node);

 private:
  // target = target OP amount
  struct Update {
    syntax::BinaryOp op;
    TypeId type;  // of the result, if the target has none yet
    bool gives_old = false;
    bool is_used = false;
  };
  Operand update(ExprId target, Operand amount, const Update& change);
  void update_in_place(ValueId address, TypeId type, Operand amount, const Update& change, ir::SlotId result);
  ValueId changed(const Update& change, Operand old, Operand amount);
  ValueId equality(syntax::BinaryOp op, ValueId same);
  std::optional<ValueId> equals_probe_name(const syntax::Binary& node);
  ValueId compare_bytes(const syntax::Binary& node);
  ValueId binary_scalar(const syntax::Binary& node, TypeId result);
  bool is_unsigned_pair(ExprId left, ExprId right);
  Operand cast_bytes(Operand operand, TypeId to);

  Scope& scope_;
  Memory& memory_;
  Reads& reads_;
  Conversions& conversions_;
  Arithmetic& arithmetic_;
  Laundering& laundering_;
  Variables& variables_;
  MapElements& elements_;
  Maps& maps_;
  Access& access_;
  Branches& branches_;
  BuiltinCalls& builtins_;
  Expressions& expressions_;
};

}  // namespace espy::lower
