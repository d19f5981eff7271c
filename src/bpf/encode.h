// Encodes machine code: jumps, map references, the line table.
#pragma once

#include <vector>

#include "bpf/emit.h"
#include "bpf/machine.h"

namespace espy::bpf {

struct CodedFunction {
  ir::FunctionId id;
  const ir::Function* function = nullptr;
  MachineFunction machine;  // after register allocation and stack layout
};

// Fills in the code and tables of `out`, functions in the given order. Returns those that are too long for the target's
// jumps and have no code.
std::vector<ir::FunctionId> encode(const std::vector<CodedFunction>& functions, const Target& target,
                                   program::BpfProgram& out);

}  // namespace espy::bpf
