// Finds out which of its probes a program serves when it fires.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lower/context_fields.h"
#include "lower/emitter.h"
#include "lower/frame.h"
#include "lower/memory.h"
#include "lower/reads.h"

namespace espy::lower {

// What distinguishes a unit that shares its program with others (merge_programs.h).
struct Part {
  int64_t cookie_distance = 0;    // from the attach cookie to the index of the probe
  bool shares_number = false;     // with Dispatch::kNumber: the number is in the first slot, common to all parts
  bool begins_session = false;    // the entry of calls, whose return another part sees
  bool ends_session = false;      // ... that part
  uint32_t max_traced_depth = 0;  // not 0: of nested calls, deeper ones return unseen, and are counted at entry
};

class ProbeDispatch : Emitter {
 public:
  ProbeDispatch(ModuleContext& module, Functions& functions, const check::Unit& unit, const Part& part, Frame& frame,
                Memory& memory, Reads& reads, ContextFields& fields)
      : Emitter(module, functions),
        unit_(unit),
        part_(part),
        frame_(frame),
        memory_(memory),
        reads_(reads),
        fields_(fields) {}

  // Adds the slot that parts by number share. It must be the main function's first one.
  void begin();
  // Writes the number to the slot that parts share, and ends the program if it is not in `numbers`, which are sorted
  // and different.
  void leave_if_none_of(std::span<const uint64_t> numbers);
  // With Dispatch::kNumber: ends the program if the number is that of no probe of the unit.
  void leave_if_other_number();
  // The index of the probe that fired.
  ValueId index();
  // With Dispatch::kNumber: the value in the main function; else invalid.
  ValueId found_index() const { return found_index_; }

 private:
  bool is_by_number() const { return unit_.context.dispatch == spec::ProbeContext::Dispatch::kNumber; }
  ValueId number();
  ValueId field(const char* name, const spec::Recipe& recipe);
  ValueId table_entry(ValueId number, std::string_view table, uint8_t entry_bytes, BlockId if_beyond);
  void match_one(ValueId number, BlockId match, BlockId other);
  void match_by_table(ValueId number, BlockId match, BlockId other);
  void skip_compat_calls();

  const check::Unit& unit_;
  const Part& part_;
  Frame& frame_;
  Memory& memory_;
  Reads& reads_;
  ContextFields& fields_;
  ValueId found_index_;
};

}  // namespace espy::lower
