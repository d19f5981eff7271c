#include "bpf/slot_ranges.h"

#include <algorithm>

#include "ir/analysis.h"

namespace espy::bpf {

using namespace ir;

namespace {

constexpr uint32_t kNoSlot = ~0u;

class SlotRanges {
 public:
  explicit SlotRanges(const Function& function)
      : function_(function), order_(reverse_post_order(function)), escapes_(function.slots.size()) {}
  std::vector<Range> run();

 private:
  bool follow(ValueId value, uint32_t slot);
  void find_addresses();
  void find_escapes();
  void find_uses();
  void widen_to_loops();

  const Function& function_;
  std::vector<BlockId> order_;
  std::vector<uint32_t> slot_of_;  // by value: the slot that it points into
  std::vector<bool> escapes_;      // by slot
  Range uses_;                     // by slot; end 0: none
  Range loops_;                    // from the target of each jump back to the jump
};

std::vector<Range> SlotRanges::run() {
  find_addresses();
  find_escapes();
  find_uses();
  widen_to_loops();
  std::vector<Range> ranges(function_.slots.size());
  for (uint32_t slot = 0; slot < ranges.size(); ++slot) {
    if (escapes_[slot])
      ranges[slot] = {{0, ~0u}};
    else if (uses_[slot].end != 0)
      ranges[slot] = {uses_[slot]};
  }
  return ranges;
}

// Notes that `value` points into `slot`. A value that may point into either of two makes both escape.
bool SlotRanges::follow(ValueId value, uint32_t slot) {
  uint32_t& known = slot_of_[value.index];
  if (known == slot) return false;
  if (known != kNoSlot) {
    escapes_[known] = escapes_[slot] = true;
    return false;
  }
  known = slot;
  return true;
}

void SlotRanges::find_addresses() {
  slot_of_.assign(function_.values.size(), kNoSlot);
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId block : order_) {
      for (ValueId id : function_.blocks[block].instructions) {
        const Instruction& instruction = function_.values[id];
        if (instruction.op == Op::k_slot) changed |= follow(id, instruction.slot.index);
        if (instruction.op == Op::k_add || instruction.op == Op::k_sub) {
          for (ValueId operand : instruction.operands)
            if (slot_of_[operand.index] != kNoSlot) changed |= follow(id, slot_of_[operand.index]);
        }
        for (const ir::Target& target : instruction.targets) {
          for (size_t i = 0; i < target.arguments.size(); ++i) {
            uint32_t slot = slot_of_[target.arguments[i].index];
            if (slot != kNoSlot) changed |= follow(function_.blocks[target.block].parameters[i], slot);
          }
        }
      }
    }
  }
}

// Operands through which memory is reached, or which a call sees while it lasts.
bool keeps_address_inside(const Instruction& instruction, size_t operand) {
  switch (instruction.op) {
    case Op::k_load:
    case Op::k_store:
    case Op::k_store_release:
    case Op::k_atomic_add:
    case Op::k_atomic_fetch_add:
    case Op::k_atomic_fetch_or:
    case Op::k_atomic_fetch_and:
    case Op::k_atomic_xchg:
    case Op::k_atomic_cmpxchg: return operand == 0;
    case Op::k_zero:
    case Op::k_copy:
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function:
    case Op::k_add:
    case Op::k_sub:
    case Op::k_branch: return true;
    default: return false;
  }
}

void SlotRanges::find_escapes() {
  for (BlockId block : order_) {
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& instruction = function_.values[id];
      for (size_t i = 0; i < instruction.operands.size(); ++i) {
        uint32_t slot = slot_of_[instruction.operands[i].index];
        if (slot != kNoSlot && !keeps_address_inside(instruction, i)) escapes_[slot] = true;
      }
    }
  }
}

// A slot is in use from its first use to its last one in reverse post order: control gets from one to the other without
// leaving that stretch, unless it jumps back.
void SlotRanges::find_uses() {
  uses_.resize(function_.slots.size());
  std::vector<uint32_t> starts(function_.blocks.size(), ~0u);  // blocks to come have no place yet
  uint32_t place = 0;
  for (BlockId block : order_) {
    starts[block.index] = place;
    for (ValueId id : function_.blocks[block].instructions) {
      for_each_use(function_.values[id], [&](ValueId used) {
        uint32_t slot = slot_of_[used.index];
        if (slot == kNoSlot) return;
        Segment& range = uses_[slot];
        if (range.end == 0) range.start = place;
        range.end = place + 1;
      });
      ++place;
    }
    for (const ir::Target& target : terminator(function_, block).targets)
      if (starts[target.block.index] < place) loops_.push_back({starts[target.block.index], place});
  }
}

// What lies between the target and the start of a jump back may run again after it: a use there makes the slot in use
// all the way round. No store is taken for the start of a new life.
void SlotRanges::widen_to_loops() {
  std::sort(loops_.begin(), loops_.end(), [](const Segment& a, const Segment& b) { return a.start < b.start; });
  Range outer;
  for (const Segment& loop : loops_) {
    if (!outer.empty() && loop.start < outer.back().end)
      outer.back().end = std::max(outer.back().end, loop.end);
    else
      outer.push_back(loop);
  }
  auto loop_at = [&](uint32_t place) -> const Segment* {
    auto next = std::upper_bound(outer.begin(), outer.end(), place,
                                 [](uint32_t at, const Segment& loop) { return at < loop.start; });
    return next != outer.begin() && place < std::prev(next)->end ? &*std::prev(next) : nullptr;
  };
  for (Segment& use : uses_) {
    if (use.end == 0) continue;
    if (const Segment* loop = loop_at(use.start)) use.start = loop->start;
    if (const Segment* loop = loop_at(use.end - 1)) use.end = loop->end;
  }
}

}  // namespace

std::vector<Range> slot_ranges(const Function& function) { return SlotRanges(function).run(); }

}  // namespace espy::bpf
