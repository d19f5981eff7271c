#include "ir/slot_liveness.h"

#include <algorithm>
#include <bitset>
#include <map>

#include "ir/analysis.h"
#include "ir/memory.h"

namespace espy::ir {
namespace {

constexpr size_t kMaxBytes = 512;

using Slots = std::vector<bool>;

// The accesses of one block to slots: those read (by loads or calls) before the block has written the bytes, those
// overwritten completely, and those accessed at all.
struct Summary {
  Slots loads, gives, overwrites, touches;
};

Summary summarize(const Function& function, const Memory& memory, const Block& block) {
  const Slots none(function.slots.size());
  Summary out{none, none, none, none};
  std::map<uint32_t, std::bitset<kMaxBytes>> written;
  for (ValueId id : block.instructions) {
    const Instruction& each = function.values[id];
    memory.for_each_read(each, [&](const Location& at, uint32_t size) {
      if (!at.is_slot()) return;
      out.touches[at.id] = true;
      const uint32_t slot_bytes = std::min<uint32_t>(function.slots[SlotId{at.id}].size_bytes, kMaxBytes);
      const bool is_known = at.is_exact && size != 0;
      const size_t begin = is_known ? std::min<size_t>(at.offset, slot_bytes) : 0;
      const size_t end = is_known ? std::min<size_t>(begin + size, slot_bytes) : slot_bytes;
      for (size_t i = begin; i < end; ++i)
        if (!written[at.id][i]) (is_call(each.op) ? out.gives : out.loads)[at.id] = true;
    });
    memory.for_each_write(each, [&](const Location& at, uint32_t size) {
      if (!at.is_slot()) return;
      out.touches[at.id] = true;
      if (!at.is_exact) return;
      for (size_t i = at.offset; i < std::min<size_t>(at.offset + size, kMaxBytes); ++i) written[at.id][i] = true;
    });
  }
  for (const auto& [slot, bytes] : written)
    out.overwrites[slot] = bytes.count() >= function.slots[SlotId{slot}].size_bytes;
  return out;
}

// By block: the slots that may have been accessed before it.
std::vector<Slots> touched_before(const Function& function, const std::vector<BlockId>& order,
                                  const std::vector<Summary>& summaries) {
  std::vector<Slots> touched(function.blocks.size(), Slots(function.slots.size()));
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId block : order) {
      for (const Target& target : terminator(function, block).targets) {
        for (size_t slot = 0; slot < function.slots.size(); ++slot) {
          const bool is_touched = touched[block.index][slot] || summaries[block.index].touches[slot];
          if (!is_touched || touched[target.block.index][slot]) continue;
          touched[target.block.index][slot] = changed = true;
        }
      }
    }
  }
  return touched;
}

// By block: the slots that may be read at or after its start before they are overwritten completely.
std::vector<Slots> wanted(const Function& function, const std::vector<BlockId>& order,
                          const std::vector<Summary>& summaries, Slots Summary::*reads) {
  std::vector<Slots> out;
  for (const Summary& summary : summaries) out.push_back(summary.*reads);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto block = order.rbegin(); block != order.rend(); ++block) {
      for (const Target& target : terminator(function, *block).targets) {
        for (size_t slot = 0; slot < function.slots.size(); ++slot) {
          const bool is_known = out[block->index][slot] || summaries[block->index].overwrites[slot];
          if (is_known || !out[target.block.index][slot]) continue;
          out[block->index][slot] = changed = true;
        }
      }
    }
  }
  return out;
}

}  // namespace

SlotLiveness::SlotLiveness(const Function& function) {
  const Memory memory(function);
  const std::vector<BlockId> order = reverse_post_order(function);
  std::vector<Summary> summaries;
  for (const Block& block : function.blocks) summaries.push_back(summarize(function, memory, block));
  live_ = wanted(function, order, summaries, &Summary::loads);
  // A call may read its arguments, so a slot that a call only fills seems live from the function's entry on; it is not
  // live before its first access.
  const std::vector<Slots> given = wanted(function, order, summaries, &Summary::gives);
  const std::vector<Slots> touched = touched_before(function, order, summaries);
  for (BlockId block : function.blocks.ids()) {
    for (SlotId slot : function.slots.ids()) {
      const bool is_given = given[block.index][slot.index] && touched[block.index][slot.index];
      if (is_given || !memory.is_private(slot)) live_[block.index][slot.index] = true;
    }
  }
}

}  // namespace espy::ir
