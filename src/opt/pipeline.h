// opt: IR to better IR, one pass a file.
//
// In: a module that ir::verify accepts. Out: one that it accepts too, and that does the same with fewer instructions,
// helper calls and memory accesses. Never done here: anything that takes a fact from the kernel's verifier. Null and
// bounds checks stay unless the same check on the same value dominates them; memory accesses stay behind the branch
// that guards them; pointer arithmetic stays `add pointer, scalar`.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace espy::opt {

// Called after each pass that changed the module, with the name of the pass.
using PassObserver = std::function<void(std::string_view pass, const ir::Module& module)>;

// An observer that runs ir::verify. Prints the module and aborts if it is not valid.
void verify_after_pass(std::string_view pass, const ir::Module& module);

// Runs all passes over all functions.
void optimize(ir::Module& module, const PassObserver& after_pass = {});

// Moves loops into functions that the kernel's verifier checks by themselves (Linux 6.3, where programs may pass memory
// that is not all written), if a program is likely to be too much for it. Nothing if all is well as it is.
// `max_depth` is how deep the new functions may call each other: their frames share the stack.
std::optional<ir::Module> outline_loops(const ir::Module& module, uint32_t max_depth);

// Runs one pass by name; gives whether it changed something. False also for a name that is no pass: see pass_names.
bool run_pass(std::string_view name, ir::Function& function);
std::vector<std::string_view> pass_names();

}  // namespace espy::opt
