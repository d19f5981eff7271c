// Machine code to bytes: jumps, descriptors, the line map.
#pragma once

#include <vector>

#include "bpf/emit.h"
#include "bpf/machine.h"

namespace espy::bpf {

struct CodedFunction {
  ir::FunctionId id;
  const ir::Function* function = nullptr;
  MachineFunction machine;  // on machine registers, its objects placed
};

// Fills `out`'s code and tables; the first function comes first.
void encode(const std::vector<CodedFunction>& functions, const Target& target, program::BpfProgram& out);

}  // namespace espy::bpf
