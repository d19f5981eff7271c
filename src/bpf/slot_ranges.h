// Live ranges of the stack slots of a function.
#pragma once

#include <vector>

#include "bpf/live_ranges.h"
#include "ir/ir.h"

namespace espy::bpf {

// Returns, by slot, the ranges in which its content may still be read. Instructions are numbered in reverse post order.
// An unused slot has no segments.
std::vector<Range> slot_ranges(const ir::Function& function);

}  // namespace espy::bpf
