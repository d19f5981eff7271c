// Where what lies in stack objects is still wanted.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace espy::ir {

class SlotLiveness {
 public:
  explicit SlotLiveness(const Function& function);
  // Something may read, from the start of the block on, what was written before it.
  bool is_live_at(BlockId block, SlotId slot) const { return live_[block.index][slot.index]; }

 private:
  std::vector<std::vector<bool>> live_;  // by block, then slot
};

}  // namespace espy::ir
