// The fields of a probe's context: arguments, return values, registers.
#pragma once

#include <cstdint>

#include "lower/emitter.h"
#include "lower/reads.h"
#include "lower/value_locations.h"

namespace espy::lower {

class ContextFields : Emitter {
 public:
  ContextFields(ModuleContext& module, Functions& functions, const spec::ProbeContext& context, Reads& reads,
                ValueLocations& locations)
      : Emitter(module, functions), context_(context), reads_(reads), locations_(locations) {}

  // See Lowering::context_field() and Lowering::register_value().
  Operand read(const spec::ContextField& field);
  ValueId register_value(const kernel::Register& reg);

 private:
  Operand context_word(const spec::ContextField& field, ValueId context);
  Operand record_string(const spec::ContextField& field, ValueId context);
  Operand at(const spec::ContextField& field, ValueId base, int64_t offset_bytes, AddressSpace space);
  ValueId user_address(const spec::Recipe& recipe);

  const spec::ProbeContext& context_;
  Reads& reads_;
  ValueLocations& locations_;
};

}  // namespace espy::lower
