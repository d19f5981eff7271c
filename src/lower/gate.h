// The gate of a program, by which user space turns its probes off for a while (program::Gates).
//
// A call of which only the entry, or only the return, is seen would be worse than one that is not seen at all: the
// script would measure its time against that of another call. So where the script probes both, a return passes only if
// the entry of its call has passed in the same slice of time. In a session the kernel sees to that. Else the first
// program at the entry of a function counts how deep the thread is in calls of it that are seen, and the last one at
// the return counts down; calls of the function within one that is seen are seen, too.
#pragma once

#include "lower/dispatch.h"
#include "lower/emitter.h"
#include "lower/memory.h"

namespace espy::lower {

class Gate : Emitter {
 public:
  Gate(ModuleContext& module, Functions& functions, const check::Unit& unit, const Part& part, Memory& memory,
       ProbeDispatch& dispatch)
      : Emitter(module, functions), unit_(unit), part_(part), memory_(memory), dispatch_(dispatch) {}

  // False for programs that are never turned off: timers, for example, which a script needs to show its results.
  bool is_wanted() const;
  // Ends the current block by a branch to `open` or `closed`.
  void branch(BlockId open, BlockId closed);

 private:
  bool has_pairs() const;
  void branch_by_state(BlockId open, BlockId closed);
  void branch_at_entry(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed);
  void branch_at_return(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed);
  // Continues where the thread is in a call that is seen, in a new block; else goes to `other`. Returns the depth.
  ValueId enter_if_within(ValueId calls, BlockId other);
  void begin_call(ValueId key, BlockId open, BlockId closed);
  ValueId state();  // of the gate
  ValueId slice();  // the number of the current one

  const check::Unit& unit_;
  const Part& part_;
  Memory& memory_;
  ProbeDispatch& dispatch_;
};

}  // namespace espy::lower
