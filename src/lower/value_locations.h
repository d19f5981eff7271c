// Values of a probed program at the locations that debug information gives: types/value_location.h.
//
// The operations of a location are run at compile time, on a stack of IR values; the program contains only the
// arithmetic that remains. A value in one piece, in a register or in memory, is read like any other. A value in several
// pieces is assembled in our memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lower/emitter.h"
#include "lower/memory.h"
#include "lower/reads.h"

namespace espy::lower {

class ValueLocations : Emitter {
 public:
  ValueLocations(ModuleContext& module, Functions& functions, const spec::ProbeContext& context, Memory& memory,
                 Reads& reads)
      : Emitter(module, functions), context_(context), memory_(memory), reads_(reads) {}

  // Requires a field with a recipe of kind kLocation.
  Operand read(const spec::ContextField& field);

 private:
  using Stack = std::vector<ValueId>;

  ValueId evaluate(const types::LocationPiece& piece, const std::vector<types::LocationOp>& ops);
  void apply(const types::LocationPiece& piece, const types::LocationOp& op, Stack& stack);
  void apply_to_top(const types::LocationPiece& piece, const types::LocationOp& op, Stack& stack);
  ValueId saved_register(int64_t offset_bytes);
  ValueId return_address(ValueId stored, ValueId stack_pointer);
  ValueId by_caller(const types::LocationPiece& piece, std::span<const types::CallSite> callers,
                    ValueId return_address);
  ValueId assemble(const std::vector<types::LocationPiece>& pieces, uint32_t size_bytes);
  void store_bytes(ValueId base, uint32_t offset_bytes, ValueId value, uint32_t size_bytes);

  const spec::ProbeContext& context_;
  Memory& memory_;
  Reads& reads_;
};

}  // namespace espy::lower
