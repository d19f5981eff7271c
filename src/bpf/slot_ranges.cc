#include "bpf/slot_ranges.h"

#include <algorithm>
#include <utility>

#include "ir/analysis.h"
#include "ir/memory.h"
#include "ir/slot_liveness.h"

namespace espy::bpf {

using namespace ir;

namespace {

constexpr uint32_t kNoSlot = ~0u;

class SlotRanges {
 public:
  explicit SlotRanges(const Function& function)
      : function_(function),
        order_(reverse_post_order(function)),
        escapes_(function.slots.size()),
        ranges_(function.slots.size()) {}
  std::vector<Range> run();

 private:
  bool follow(ValueId value, uint32_t slot);
  void find_addresses();
  void find_escapes();
  void find_ranges();
  static void add(Range& range, Segment segment);

  const Function& function_;
  std::vector<BlockId> order_;
  std::vector<uint32_t> slot_of_;  // by value: the slot that it points into
  std::vector<bool> escapes_;      // by slot
  std::vector<Range> ranges_;      // by slot
};

std::vector<Range> SlotRanges::run() {
  find_addresses();
  find_escapes();
  find_ranges();
  for (uint32_t slot = 0; slot < ranges_.size(); ++slot)
    if (escapes_[slot]) ranges_[slot] = {{0, ~0u}};
  return std::move(ranges_);
}

// Records that `value` points into `slot`. If it may point into two slots, both escape.
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

// Returns the operands through which the instruction accesses memory, arguments of calls included.
bool keeps_address_inside(const Instruction& instruction, size_t operand) {
  if (ir::accesses_memory(instruction.op)) return operand == 0;
  switch (instruction.op) {
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

// Within a block, a slot is live from the start if it is live in, else from its first use; to the end if it is live
// out, else to its last use.
void SlotRanges::find_ranges() {
  const SlotLiveness liveness(function_);
  std::vector<Segment> uses(function_.slots.size());  // in the block
  std::vector<uint32_t> used;                         // the slots with uses
  const auto extend = [&](uint32_t slot, Segment by) {
    Segment& use = uses[slot];
    if (use.end == 0) {
      use = by;
      used.push_back(slot);
    } else {
      use = {std::min(use.start, by.start), std::max(use.end, by.end)};
    }
  };
  uint32_t place = 0;
  for (BlockId block : order_) {
    const uint32_t start = place;
    for (const SlotId slot : liveness.at(block)) extend(slot.index, {start, start + 1});
    for (ValueId id : function_.blocks[block].instructions) {
      for_each_use(function_.values[id], [&](ValueId value) {
        const uint32_t slot = slot_of_[value.index];
        if (slot != kNoSlot) extend(slot, {place, place + 1});
      });
      ++place;
    }
    for (const ir::Target& target : terminator(function_, block).targets)
      for (const SlotId slot : liveness.at(target.block))
        extend(slot.index, {uses[slot.index].end != 0 ? uses[slot.index].start : start, place});
    for (const uint32_t slot : used) add(ranges_[slot], std::exchange(uses[slot], {}));
    used.clear();
  }
}

void SlotRanges::add(Range& range, Segment segment) {
  if (!range.empty() && range.back().end == segment.start) {
    range.back().end = segment.end;
  } else {
    range.push_back(segment);
  }
}

}  // namespace

std::vector<Range> slot_ranges(const Function& function) { return SlotRanges(function).run(); }

}  // namespace espy::bpf
