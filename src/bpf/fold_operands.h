// Values that need no register: addresses that fold into an instruction's offset, compares that fold into a branch,
// values that are cheaper to rematerialize than to keep, and unused values.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace espy::bpf {

// `base` + `offset`, with all constants of the address folded into `offset`.
struct FoldedAddress {
  ir::ValueId base;
  int64_t offset = 0;
};
FoldedAddress fold_address(const ir::Function& function, ir::ValueId address, int64_t offset);

// Returns true if the offset fits into the 16 bits of a memory operand, with 512 bytes to spare for multi-word
// accesses.
constexpr bool fits_offset(int64_t offset) { return offset >= -32768 && offset <= 32767 - 512; }

class Folding {
 public:
  explicit Folding(const ir::Function& function);

  // Returns true if the value must be computed into a register at its definition.
  bool is_needed(ir::ValueId value) const { return uses_[value.index] > 0; }
  // Returns the number of uses by selected instructions.
  uint32_t uses(ir::ValueId value) const { return uses_[value.index]; }
  // Returns the compare whose result only this branch tests, so that the branch can do the comparison; null if there is
  // none.
  const ir::Instruction* compare_of(const ir::Instruction& branch) const;

 private:
  void use(ir::ValueId value);
  void use_operands(const ir::Instruction& instruction);

  const ir::Function& function_;
  std::vector<uint32_t> uses_;
  std::vector<uint32_t> raw_uses_;
  std::vector<std::vector<ir::ValueId>> incoming_;  // by block parameter: the arguments of the edges
  std::vector<ir::ValueId> todo_;
};

}  // namespace espy::bpf
