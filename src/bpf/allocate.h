// Register allocation: assigns r0-r9 or stack slots to virtual registers.
#pragma once

#include <vector>

#include "bpf/live_ranges.h"
#include "bpf/machine.h"

namespace espy::bpf {

// Replaces all virtual registers and removes copies of a register to itself. Adds spill slots to `function.objects`.
void allocate(MachineFunction& function);

// Merges virtual registers that are connected by a copy and never live at the same time (allocate.cc).
void coalesce(MachineFunction& function);

// Replaces `spilled` registers by stack objects or rematerialization. The new registers, each for a single instruction
// or a run of instructions, are marked unspillable. `ranges` are the live ranges of all registers.
void spill(MachineFunction& function, const std::vector<Reg>& spilled, const std::vector<Range>& ranges);

}  // namespace espy::bpf
