// dse: dead store elimination.
//
// Considers private stack objects (ir/memory.h) only. Removes all writes to objects that are never read. For the
// others, walks each block backwards with the set of bytes that are overwritten, or discarded by `ret`, before they are
// read, and removes writes that lie completely within this set.
#include <bitset>

#include "ir/analysis.h"
#include "ir/memory.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

constexpr size_t kMaxBytes = 512;  // of a slot
using Bytes = std::bitset<kMaxBytes>;

class DeadStores {
 public:
  explicit DeadStores(Function& function) : function_(function), memory_(function) {}
  bool run();

 private:
  void find_reads();
  bool block(BlockId block);
  bool is_dead(const Instruction& instruction, bool ends_here);
  Bytes& dead_bytes(uint32_t slot, bool ends_here);

  Function& function_;
  Memory memory_;
  std::vector<bool> is_read_;  // by slot
  // By slot: the set, and the walk in which it was reset.
  std::vector<Bytes> dead_;
  std::vector<uint32_t> begun_;
  uint32_t walk_ = 0;
};

bool DeadStores::run() {
  if (function_.slots.empty()) return false;
  find_reads();
  dead_.resize(function_.slots.size());
  begun_.resize(function_.slots.size());
  bool changed = false;
  for (BlockId each : function_.blocks.ids()) changed |= block(each);
  return changed;
}

void DeadStores::find_reads() {
  is_read_.resize(function_.slots.size());
  for (const Block& block : function_.blocks)
    for (ValueId id : block.instructions)
      memory_.for_each_read(function_.values[id], [&](const Location& location, uint32_t) {
        if (location.is_slot()) is_read_[location.id] = true;
      });
}

Bytes& DeadStores::dead_bytes(uint32_t slot, bool ends_here) {
  if (begun_[slot] != walk_) {
    begun_[slot] = walk_;
    ends_here ? dead_[slot].set() : dead_[slot].reset();
  }
  return dead_[slot];
}

bool DeadStores::block(BlockId block) {
  ++walk_;
  bool ends_here = terminator(function_, block).op == Op::k_ret;
  std::vector<ValueId>& instructions = function_.blocks[block].instructions;
  std::vector<bool> drop(instructions.size());
  bool changed = false;
  for (size_t i = instructions.size(); i-- > 0;) {
    const Instruction& instruction = function_.values[instructions[i]];
    if (is_dead(instruction, ends_here)) {
      drop[i] = changed = true;
      continue;
    }
    memory_.for_each_read(instruction, [&](const Location& location, uint32_t) {
      if (location.is_slot()) dead_bytes(location.id, ends_here).reset();
    });
  }
  if (!changed) return false;
  size_t kept = 0;
  for (size_t i = 0; i < instructions.size(); ++i)
    if (!drop[i]) instructions[kept++] = instructions[i];
  instructions.resize(kept);
  return true;
}

// Returns true if the write is dead; if not, marks its bytes as overwritten.
bool DeadStores::is_dead(const Instruction& instruction, bool ends_here) {
  bool is_plain = instruction.op == Op::k_store || instruction.op == Op::k_zero || instruction.op == Op::k_copy;
  if (!is_plain) return false;
  bool dead = false;
  memory_.for_each_write(instruction, [&](const Location& location, uint32_t size_bytes) {
    if (!memory_.is_private(location)) return;
    if (!is_read_[location.id]) {
      dead = true;
      return;
    }
    if (!location.is_exact || location.offset < 0 || location.offset + size_bytes > int64_t{kMaxBytes}) return;
    Bytes& bytes = dead_bytes(location.id, ends_here);
    size_t first = static_cast<size_t>(location.offset);
    dead = true;
    for (size_t i = first; i < first + size_bytes; ++i) dead &= bytes[i];
    for (size_t i = first; i < first + size_bytes; ++i) bytes.set(i);
  });
  return dead;
}

}  // namespace

bool dse(Function& function) { return DeadStores(function).run(); }

}  // namespace espy::opt
