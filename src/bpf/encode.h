// From machine code to bytes: the order of blocks, then their encoding.
#pragma once

#include <vector>

#include "bpf/emit.h"
#include "bpf/machine_code.h"
#include "ir/ir.h"

namespace espy::bpf {

// ---- The order of blocks in the code.

// Returns the reachable blocks in layout order: reverse post order, so that the true target follows its branch, with
// blocks that are only reached through a null pointer last.
std::vector<ir::BlockId> block_order(const ir::Function& function);

// ---- Encodes machine code: jumps, map references, the line table.

struct CodedFunction {
  ir::FunctionId id;
  const ir::Function* function = nullptr;
  MachineFunction machine;  // after register allocation and stack layout
};

// Fills in the code and tables of `out`, functions in the given order. Returns functions that are too long for the
// jumps of the target, and have no code.
std::vector<ir::FunctionId> encode(const std::vector<CodedFunction>& functions, const Target& target,
                                   program::BpfProgram& out);

}  // namespace espy::bpf
