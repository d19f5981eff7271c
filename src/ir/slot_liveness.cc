#include "ir/slot_liveness.h"

#include <algorithm>
#include <bitset>
#include <map>

#include "ir/analysis.h"
#include "ir/memory.h"

namespace espy::ir {
namespace {

constexpr size_t kMaxBytes = 512;

// What one block does with the slots: those that it reads before it has written what is read, and those that it
// writes wholly.
struct Summary {
  std::vector<bool> reads, overwrites;
};

Summary summarize(const Function& function, const Memory& memory, const Block& block) {
  Summary out{std::vector<bool>(function.slots.size()), std::vector<bool>(function.slots.size())};
  std::map<uint32_t, std::bitset<kMaxBytes>> written;
  for (ValueId id : block.instructions) {
    const Instruction& each = function.values[id];
    memory.for_each_read(each, [&](const Location& at, uint32_t size) {
      if (!at.is_slot()) return;
      const uint32_t slot_bytes = std::min<uint32_t>(function.slots[SlotId{at.id}].size_bytes, kMaxBytes);
      const bool is_known = at.is_exact && size != 0;
      const size_t begin = is_known ? std::min<size_t>(at.offset, slot_bytes) : 0;
      const size_t end = is_known ? std::min<size_t>(begin + size, slot_bytes) : slot_bytes;
      for (size_t i = begin; i < end; ++i)
        if (!written[at.id][i]) out.reads[at.id] = true;
    });
    memory.for_each_write(each, [&](const Location& at, uint32_t size) {
      if (!at.is_slot() || !at.is_exact) return;
      for (size_t i = at.offset; i < std::min<size_t>(at.offset + size, kMaxBytes); ++i) written[at.id][i] = true;
    });
  }
  for (const auto& [slot, bytes] : written)
    out.overwrites[slot] = bytes.count() >= function.slots[SlotId{slot}].size_bytes;
  return out;
}

}  // namespace

SlotLiveness::SlotLiveness(const Function& function) : live_(function.blocks.size()) {
  const Memory memory(function);
  std::vector<Summary> summaries;
  for (const Block& block : function.blocks) summaries.push_back(summarize(function, memory, block));
  for (size_t i = 0; i < live_.size(); ++i) {
    live_[i] = summaries[i].reads;
    for (SlotId slot : function.slots.ids())
      if (!memory.is_private(slot)) live_[i][slot.index] = true;
  }
  const std::vector<BlockId> order = reverse_post_order(function);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto block = order.rbegin(); block != order.rend(); ++block) {
      for (const Target& target : terminator(function, *block).targets) {
        for (size_t slot = 0; slot < function.slots.size(); ++slot) {
          if (!live_[target.block.index][slot] || live_[block->index][slot] || summaries[block->index].overwrites[slot])
            continue;
          live_[block->index][slot] = changed = true;
        }
      }
    }
  }
}

}  // namespace espy::ir
