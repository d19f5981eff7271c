// Which block follows which.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace espy::bpf {

// The reachable blocks in the order to lay them out: reverse post order, so that a branch's true side comes right
// behind it, but blocks that only a null pointer leads to come last.
std::vector<ir::BlockId> block_order(const ir::Function& function);

}  // namespace espy::bpf
