// Register allocation: assigns r0-r9 or stack slots to virtual registers.
#pragma once

#include "bpf/machine.h"

namespace espy::bpf {

// Replaces all virtual registers and removes copies of a register to itself. Adds spill slots to `function.objects`.
void allocate(MachineFunction& function);

// Merges virtual registers that are connected by a copy and never live at the same time (allocate.cc).
void coalesce(MachineFunction& function);

// Replaces `spilled` registers by stack objects or rematerialization. The new registers, each for a single instruction
// or a run of instructions, are marked unspillable.
void spill(MachineFunction& function, const std::vector<Reg>& spilled);

}  // namespace espy::bpf
