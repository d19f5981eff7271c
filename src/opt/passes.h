// The passes. Each takes a function that obeys the rules of docs/ir.md, leaves it so, and says whether it changed it.
// The story of a pass is at the top of its file.
#pragma once

#include "ir/ir.h"

namespace espy::opt {

bool mem2reg(ir::Function& function);              // script variables become values
bool fold_constants(ir::Function& function);       // constants, identities, cheaper forms
bool cse(ir::Function& function);                  // equal computations are done once
bool store_to_load(ir::Function& function);        // loads of what is known to be there
bool map_lookup_cse(ir::Function& function);       // a second map lookup of the same key
bool correlated_branches(ir::Function& function);  // branches that a dominating branch has decided
bool simplify_cfg(ir::Function& function);         // blocks and edges
bool dse(ir::Function& function);                  // stores that nobody reads
bool dce(ir::Function& function);                  // values, parameters and blocks without use

}  // namespace espy::opt
