// The passes, which pipeline.cc orders. A function pass takes a function that obeys the rules of docs/ir.md, keeps
// them, and returns whether it changed the function. Each pass is described at the top of its file.
#pragma once

#include <optional>

#include "ir/ir.h"
#include "opt/pipeline.h"

namespace espy::opt {

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

}  // namespace espy::opt
