// Liveness of stack objects.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace espy::ir {

class SlotLiveness {
 public:
  explicit SlotLiveness(const Function& function);
  // Returns true if the content of the slot at the start of the block may be read later.
  bool is_live_at(BlockId block, SlotId slot) const { return live_[block.index][slot.index]; }

 private:
  std::vector<std::vector<bool>> live_;  // by block, then slot
};

}  // namespace espy::ir
