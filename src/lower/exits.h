// Leaves the action, a function of the script, or the program.
#pragma once

#include <cstdint>

#include "lower/emitter.h"
#include "lower/frame.h"
#include "lower/scope.h"

namespace espy::lower {

class Exits : Emitter {
 public:
  Exits(ModuleContext& module, Functions& functions, Frame& frame, Scope& scope)
      : Emitter(module, functions), frame_(frame), scope_(scope) {}

  // The block in the main function that ends the action.
  void set_end(BlockId block) { end_ = block; }

  // All of these continue in an unreachable block.
  void end_action();    // see Lowering
  void end_function();  // ends the current activation: `return`
  void go_to(BlockId block);

  // See Lowering.
  void set_exit_flag(ValueId status);
  // Ends this program if the flag is set, and what it does then says so.
  void leave_if_exited(spec::AfterExit after);

 private:
  void leave_callback(int64_t how);

  Frame& frame_;
  Scope& scope_;
  BlockId end_;
};

}  // namespace espy::lower
