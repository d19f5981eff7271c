// Instruction selection: translates a function of IR to BPF instructions on virtual registers.
#pragma once

#include "bpf/emit.h"
#include "bpf/machine.h"

namespace espy::bpf {

MachineFunction select(const ir::Function& function, const Target& target);

}  // namespace espy::bpf
