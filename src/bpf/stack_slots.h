// The stack of a function: live ranges of its slots, and their offsets.
#pragma once

#include <vector>

#include "bpf/allocate.h"
#include "bpf/machine_code.h"
#include "ir/ir.h"

namespace espy::bpf {

// ---- Live ranges of the stack slots of a function.

// Returns, by slot, the ranges in which its content may still be read. Instructions are numbered in reverse post order.
// An unused slot has no segments.
std::vector<Range> slot_ranges(const ir::Function& function);

// ---- Stack layout: assigns frame offsets to slots and spilled registers.

// Sets the offsets of the objects of `machine` and its stack_bytes. `function` is the IR that it was selected from,
// which determines the live ranges of slots.
void place_objects(const ir::Function& function, MachineFunction& machine);

}  // namespace espy::bpf
