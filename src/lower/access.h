// Members, elements, and the memory that an expression designates.
#pragma once

#include <cstdint>
#include <string>

#include "lower/context_fields.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/map_elements.h"
#include "lower/memory.h"
#include "lower/reads.h"
#include "lower/scope.h"
#include "lower/variables.h"

namespace espy::lower {

class Expressions;
class Maps;

class Access : Emitter {
 public:
  Access(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Reads& reads,
         Conversions& conversions, ContextFields& fields, Variables& variables, MapElements& elements, Maps& maps,
         Expressions& expressions)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        reads_(reads),
        conversions_(conversions),
        fields_(fields),
        variables_(variables),
        elements_(elements),
        maps_(maps),
        expressions_(expressions) {}

  Operand member(ExprId expr, const syntax::Access& node);
  Operand tuple_member(ExprId expr, const syntax::TupleAccess& node);
  Operand index(ExprId expr, const syntax::Index& node);
  // The address that `expr` designates; its value if it designates none.
  Operand location(ExprId expr);
  // The operand of unary &.
  Operand address_of(ExprId expr);

 private:
  AddressSpace space_of(Operand base);
  Operand member_of(Operand base, TypeId struct_type, const types::FoundMember& found);
  ValueId bit_field(ValueId base, const types::FoundMember& found, AddressSpace space);
  Operand tuple_element(Operand base, size_t index, TypeId otherwise);
  Operand element_at(Operand base, TypeId element, ValueId index, uint32_t count);
  Operand member_location(ExprId base, const std::string& name);
  Operand element_location(ExprId expr, const syntax::Index& node);

  Scope& scope_;
  Memory& memory_;
  Reads& reads_;
  Conversions& conversions_;
  ContextFields& fields_;
  Variables& variables_;
  MapElements& elements_;
  Maps& maps_;
  Expressions& expressions_;
};

}  // namespace espy::lower
