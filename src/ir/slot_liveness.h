// Liveness of stack objects.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace espy::ir {

class SlotLiveness {
 public:
  explicit SlotLiveness(const Function& function);
  // Returns the slots whose content at the start of the block may be read later.
  std::span<const SlotId> at(BlockId block) const { return live_[block.index]; }
  bool is_live_at(BlockId block, SlotId slot) const { return std::ranges::binary_search(at(block), slot); }

 private:
  std::vector<std::vector<SlotId>> live_;  // by block, ascending
};

}  // namespace espy::ir
