// opt: the optimizer, one pass per file.
//
// Takes a module that ir::verify accepts and leaves one that it accepts, with the same behavior and fewer instructions,
// helper calls and memory accesses. No pass may remove a fact that the kernel's verifier needs. Null and
// bounds checks stay unless the same check on the same value dominates them; memory accesses stay behind the branch
// that guards them; pointer arithmetic stays `add pointer, scalar`.
#pragma once

#include <cstdint>
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

// Runs the function passes over all functions.
void optimize(ir::Module& module, const PassObserver& after_pass = {});

struct ModuleLimits {
  uint32_t max_call_depth = 5;      // of the functions that a pass adds: the frames of a chain of calls share the stack
  uint32_t max_loop_branches = 24;  // a function with more branches in its loops counts as too complex
};

// Runs the module passes, which make programs cheaper for the kernel's verifier, over an optimized module. nullopt if
// nothing changes. The caller keeps the original for the case that the result does not fit on the stack.
std::optional<ir::Module> optimize_for_verifier(const ir::Module& module, const ModuleLimits& limits,
                                                const PassObserver& after_pass = {});

// Runs one pass by name: a function pass over each function, a module pass on every function that it can change.
// Returns whether the module changed. Requires one of pass_names().
bool run_pass(std::string_view name, ir::Module& module);
std::vector<std::string_view> pass_names();

}  // namespace espy::opt
