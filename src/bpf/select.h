// Instruction selection: a function of IR becomes BPF instructions on virtual registers.
#pragma once

#include "bpf/emit.h"
#include "bpf/machine.h"

namespace espy::bpf {

MachineFunction select(const ir::Function& function, const Target& target);

}  // namespace espy::bpf
