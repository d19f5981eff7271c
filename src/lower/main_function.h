// What surrounds the action in the main function:
//
//   entry     recursion guard, exit flag, dispatch by number, process filter, hit counter
//   guard     the predicate
//   setup     scratch and frame, if used; before `guard` if the predicate uses scratch
//   body      the action
//   exit      releases the scratch region, returns
#pragma once

#include <cstdint>
#include <functional>

#include "lower/dispatch.h"
#include "lower/emitter.h"
#include "lower/exits.h"
#include "lower/frame.h"
#include "lower/gate.h"
#include "lower/reads.h"
#include "lower/scope.h"
#include "lower/scratch.h"

namespace espy::lower {

class MainFunction : Emitter {
 public:
  MainFunction(ModuleContext& module, Functions& functions, const check::Unit& unit, const Part& part, Scope& scope,
               Frame& frame, Scratch& scratch, Memory& memory, Reads& reads, ProbeDispatch& dispatch, Exits& exits)
      : Emitter(module, functions),
        unit_(unit),
        part_(part),
        scope_(scope),
        frame_(frame),
        scratch_(scratch),
        reads_(reads),
        dispatch_(dispatch),
        exits_(exits),
        gate_(module, functions, unit, part, memory, dispatch) {}

  // Writes up to where the action begins. `write_guard` writes the predicate, which branches to one of two blocks; null
  // if there is none.
  using WriteGuard = std::function<void(BlockId if_true, BlockId if_false)>;
  void begin(const WriteGuard& write_guard);
  // Writes the rest, after the action.
  void finish();
  // Writes the whole main function of a unit that does nothing at the entry of calls but count lost returns.
  void write_entry_alone();

 private:
  void write_entry();
  bool may_exit();
  void write_guard(const WriteGuard& write_guard);
  void count_deep_nesting();
  void count_hit(int64_t change);
  void add_to(const program::HitCounters& counters, int64_t change);
  void leave_if_closed();
  void write_setup();
  void write_exit();
  bool needs_recursion_guard();
  void begin_recursion_guard();
  void end_recursion_guard();

  const check::Unit& unit_;
  const Part& part_;
  Scope& scope_;
  Frame& frame_;
  Scratch& scratch_;
  Reads& reads_;
  ProbeDispatch& dispatch_;
  Exits& exits_;
  Gate gate_;
  BlockId setup_, exit_, skip_;
  BlockId after_setup_;  // guard or body
  bool is_setup_before_guard_ = false;
  ValueId recursion_flag_;   // its address; invalid if there is no recursion guard
  BlockId recursion_block_;  // where a recursion ends
};

}  // namespace espy::lower
