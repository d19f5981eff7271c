// Register allocation: virtual registers become r0-r9, or go to the stack.
#pragma once

#include "bpf/machine.h"

namespace espy::bpf {

// Afterwards no instruction names a virtual register, none copies a register to itself, and spill slots are among
// `function.objects`.
void allocate(MachineFunction& function);

// Gives virtual registers that a copy connects one number where they are never both alive. allocate.cc tells why.
void coalesce(MachineFunction& function);

// Replaces `spilled` registers by stack objects or by making their values again. Registers made for single instructions
// are marked unspillable.
void spill(MachineFunction& function, const std::vector<Reg>& spilled);

}  // namespace espy::bpf
