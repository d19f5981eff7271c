// Hides from the verifier what it knows of a number, so that it finishes exploring a loop, or an action with many
// `if`s.
//
// The verifier explores a loop until it reaches a state that it has seen before. A counter with a known value, or a
// variable with other bounds in each iteration, makes each state new, until the verifier gives up at a million
// instructions. Kernels with may_goto bound the loop themselves, so nothing is lost if the number is unknown.
//
// After an `if`, the verifier knows more of what was compared, something else on each path. Where it decides a later
// comparison by that, it explores all that follows once for each path: a time that is square in the number of `if`s.
#pragma once

#include <map>

#include "lower/emitter.h"
#include "lower/scope.h"

namespace espy::lower {

class Laundering : Emitter {
 public:
  Laundering(ModuleContext& module, Functions& functions, Scope& scope) : Emitter(module, functions), scope_(scope) {}

  bool kernel_has_may_goto() const { return kernel().has(kernel::Feature::kMayGoto); }
  // True inside a loop that the verifier must find to converge.
  bool is_in_converging_loop() { return !scope_.activation().loops.empty() && kernel_has_may_goto(); }
  // True in an action or function with many `if`s.
  bool has_many_branches();
  // The same number, of which the verifier knows nothing.
  ValueId launder(ValueId value);
  // See Lowering. An operand that is not an integer is returned as it is.
  ValueId opaque_copy(ValueId number);
  Operand opaque_copy(Operand operand);

 private:
  Scope& scope_;
  std::map<FunctionId, ir::SlotId> slots_;
  std::map<const check::Unit*, bool> has_many_;
};

}  // namespace espy::lower
