#include "ir/slot_liveness.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <utility>

#include "ir/analysis.h"
#include "ir/memory.h"

namespace espy::ir {
namespace {

constexpr size_t kMaxBytes = 512;

// The blocks that access a slot, each once: that read it (by loads or calls) before they have written the bytes, that
// overwrite it completely, and that access it at all.
struct Accesses {
  std::vector<BlockId> loads, gives, overwrites, touches;
};

void add_once(std::vector<BlockId>& blocks, BlockId block) {
  if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
}

// Adds the accesses of one block, by slot.
void add_block(std::vector<Accesses>& out, const Function& function, const Memory& memory, BlockId block) {
  std::map<uint32_t, std::bitset<kMaxBytes>> written;
  for (ValueId id : function.blocks[block].instructions) {
    const Instruction& each = function.values[id];
    memory.for_each_read(each, [&](const Location& at, uint32_t size) {
      if (!at.is_slot()) return;
      add_once(out[at.id].touches, block);
      const uint32_t slot_bytes = std::min<uint32_t>(function.slots[SlotId{at.id}].size_bytes, kMaxBytes);
      const bool is_known = at.is_exact && size != 0;
      const size_t begin = is_known ? std::min<size_t>(at.offset, slot_bytes) : 0;
      const size_t stop = is_known ? std::min<size_t>(begin + size, slot_bytes) : slot_bytes;
      for (size_t i = begin; i < stop; ++i)
        if (!written[at.id][i]) add_once(is_call(each.op) ? out[at.id].gives : out[at.id].loads, block);
    });
    memory.for_each_write(each, [&](const Location& at, uint32_t size) {
      if (!at.is_slot()) return;
      add_once(out[at.id].touches, block);
      if (!at.is_exact) return;
      for (size_t i = at.offset; i < std::min<size_t>(at.offset + size, kMaxBytes); ++i) written[at.id][i] = true;
    });
  }
  for (const auto& [slot, bytes] : written)
    if (bytes.count() >= function.slots[SlotId{slot}].size_bytes) add_once(out[slot].overwrites, block);
}

// A set of blocks that is emptied at once.
class BlockSet {
 public:
  explicit BlockSet(size_t count) : round_(count) {}
  void clear() { ++current_; }
  bool has(BlockId block) const { return round_[block.index] == current_; }
  bool add(BlockId block) { return std::exchange(round_[block.index], current_) != current_; }

 private:
  std::vector<uint32_t> round_;  // in which the block was added last
  uint32_t current_ = 1;
};

// Follows one slot after the other, so that the time is that of the blocks in which slots are live.
class Follower {
 public:
  explicit Follower(const Function& function)
      : function_(function),
        predecessors_(function),
        overwrites_(function.blocks.size()),
        seen_(function.blocks.size()),
        touched_(function.blocks.size()) {}

  // Returns the blocks at whose start the slot may be read, before it is overwritten completely, by `reads` or later.
  std::vector<BlockId> wanted(const std::vector<BlockId>& reads, const std::vector<BlockId>& overwrites) {
    overwrites_.clear();
    for (const BlockId block : overwrites) overwrites_.add(block);
    seen_.clear();
    std::vector<BlockId> out;
    for (const BlockId block : reads)
      if (seen_.add(block)) out.push_back(block);
    for (size_t i = 0; i < out.size(); ++i)
      for (const BlockId from : predecessors_[out[i]])
        if (!overwrites_.has(from) && seen_.add(from)) out.push_back(from);
    return out;
  }

  // Keeps the blocks before which the slot may have been accessed.
  void keep_touched(std::vector<BlockId>& blocks, const std::vector<BlockId>& touches) {
    touched_.clear();
    std::vector<BlockId> todo = touches;
    while (!todo.empty()) {
      const BlockId block = todo.back();
      todo.pop_back();
      for (const Target& target : terminator(function_, block).targets)
        if (touched_.add(target.block)) todo.push_back(target.block);
    }
    std::erase_if(blocks, [&](BlockId block) { return !touched_.has(block); });
  }

 private:
  const Function& function_;
  Predecessors predecessors_;
  BlockSet overwrites_, seen_, touched_;
};

}  // namespace

SlotLiveness::SlotLiveness(const Function& function) : live_(function.blocks.size()) {
  const Memory memory(function);
  std::vector<Accesses> accesses(function.slots.size());
  for (const BlockId block : reverse_post_order(function)) add_block(accesses, function, memory, block);
  Follower follower(function);
  BlockSet live(function.blocks.size());
  for (const SlotId slot : function.slots.ids()) {
    const Accesses& own = accesses[slot.index];
    live.clear();
    const auto add = [&](BlockId block) {
      if (live.add(block)) live_[block.index].push_back(slot);
    };
    for (const BlockId block : follower.wanted(own.loads, own.overwrites)) add(block);
    // A call may read its arguments, so a slot that a call only fills seems live from the function's entry on; it is
    // not live before its first access.
    std::vector<BlockId> given = follower.wanted(own.gives, own.overwrites);
    if (!given.empty()) follower.keep_touched(given, own.touches);
    for (const BlockId block : given) add(block);
    if (!memory.is_private(slot))
      for (const BlockId block : function.blocks.ids()) add(block);
  }
}

}  // namespace espy::ir
