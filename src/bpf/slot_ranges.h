// Where a function uses its stack slots.
#pragma once

#include <vector>

#include "bpf/live_ranges.h"
#include "ir/ir.h"

namespace espy::bpf {

// By slot: where its bytes may hold something that is still wanted. Instructions are numbered in reverse post order. A
// slot that nobody uses has no segments.
std::vector<Range> slot_ranges(const ir::Function& function);

}  // namespace espy::bpf
