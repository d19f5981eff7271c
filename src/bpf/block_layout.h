// The order of blocks in the code.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace espy::bpf {

// Returns the reachable blocks in layout order: reverse post order, so that the true target follows its branch, with
// blocks that are only reached through a null pointer last.
std::vector<ir::BlockId> block_order(const ir::Function& function);

}  // namespace espy::bpf
