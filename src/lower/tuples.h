// Tuples, records and map keys: values that are assembled member by member.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lower/builtin_calls.h"
#include "lower/context_fields.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/memory.h"
#include "lower/scope.h"

namespace espy::lower {

class Expressions;

class Tuples : Emitter {
 public:
  Tuples(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Reads& reads,
         Conversions& conversions, ContextFields& fields, BuiltinCalls& builtins, Expressions& expressions)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        reads_(reads),
        conversions_(conversions),
        fields_(fields),
        builtins_(builtins),
        expressions_(expressions) {}

  Operand make(TypeId type, const std::vector<ExprId>& elements);
  // `args` or `locals` as a whole: a record of all fields that can be read.
  Operand context_record(TypeId type, std::string_view name);
  // Stores the value of `expr` as type `to` at `zeroed` + offset. A builtin that can write its string there does so,
  // which saves a copy, if the offset is a multiple of 8: such builtins store words, which must be aligned.
  void store_member(ValueId zeroed, uint32_t offset_bytes, ExprId expr, TypeId to);

 private:
  Scope& scope_;
  Memory& memory_;
  Reads& reads_;
  Conversions& conversions_;
  ContextFields& fields_;
  BuiltinCalls& builtins_;
  Expressions& expressions_;
};

}  // namespace espy::lower
