// What needs no register of its own: addresses that fit into an instruction's offset, compares that fit into a branch,
// values that are cheaper to make again than to keep, and whatever nobody needs.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace espy::bpf {

// `base` + `offset`, where base is no sum of a value and a constant that could be added to offset.
struct FoldedAddress {
  ir::ValueId base;
  int64_t offset = 0;
};
FoldedAddress fold_address(const ir::Function& function, ir::ValueId address, int64_t offset);

// Offsets of memory operands have 16 bits; an operand of at most 512 bytes behind one must fit, too.
constexpr bool fits_offset(int64_t offset) { return offset >= -32768 && offset <= 32767 - 512; }

// A constant, or the address of a slot, map, map's value or function.
bool is_made_anew(const ir::Instruction& instruction);

class Folding {
 public:
  explicit Folding(const ir::Function& function);

  // Whether the value must be put into a register where it stands in its block.
  bool is_needed(ir::ValueId value) const { return uses_[value.index] > 0; }
  // Uses by selected instructions, each counted.
  uint32_t uses(ir::ValueId value) const { return uses_[value.index]; }
  // The compare that the branch does itself because it tests its result, and no one else does. Null if there is none.
  const ir::Instruction* compare_of(const ir::Instruction& branch) const;

 private:
  void use(ir::ValueId value);
  void use_operands(const ir::Instruction& instruction);

  const ir::Function& function_;
  std::vector<uint32_t> uses_;
  std::vector<uint32_t> raw_uses_;
  std::vector<std::vector<ir::ValueId>> incoming_;  // by block parameter: what the edges give it
  std::vector<ir::ValueId> todo_;
};

}  // namespace espy::bpf
