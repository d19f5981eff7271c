// opt: the optimizer, one pass per file.
//
// Takes a module that ir::verify accepts and leaves one that it accepts, with the same behavior and fewer instructions,
// helper calls and memory accesses. No pass may remove a fact that the kernel's verifier needs. Null and bounds checks
// stay unless the same check on the same value dominates them; memory accesses stay after the branch that guards them;
// pointer arithmetic stays `add pointer, scalar`.
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

// ---- The passes, which pipeline.cc orders. A function pass takes a function that obeys the rules of
// docs/internals/ir.md, keeps them, and returns whether it changed the function. Each pass is described at the top of
// its file.

bool mem2reg(ir::Function& function);              // script variables to values
bool fold_constants(ir::Function& function);       // constants, identities, cheaper forms
bool cse(ir::Function& function);                  // equal computations are done once
bool store_to_load(ir::Function& function);        // loads of values that are known
bool map_lookup_cse(ir::Function& function);       // a second map lookup of the same key
bool correlated_branches(ir::Function& function);  // branches that a dominating branch has decided
bool simplify_cfg(ir::Function& function);         // blocks and edges
bool dse(ir::Function& function);                  // stores that are never read
bool dce(ir::Function& function);                  // values, parameters and blocks without use

// Helpers that a program calls more than `max_calls` times are called by functions. Returns whether there are any.
bool outline_calls(ir::Module& module, size_t max_calls);

// A module pass returns the changed module, nullopt if it changes nothing. Loops of functions that are too complex
// become functions, which the kernel's verifier checks once each.
std::optional<ir::Module> outline_loops(const ir::Module& module, const ModuleLimits& limits);

// ---- Evaluation of operations on constants, by the definitions of docs/internals/ir.md.

// Returns `op` of one or two constants (unary operations ignore `b`); nullopt if the operation is not arithmetic.
std::optional<int64_t> evaluate(ir::Op op, int64_t a, int64_t b = 0);
bool evaluate(ir::Condition condition, int64_t a, int64_t b);

bool is_comparison(ir::Op op);  // eq to sle: the result is 0 or 1
bool is_commutative(ir::Op op);

}  // namespace espy::opt
