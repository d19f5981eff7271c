#include "bpf/stack_slots.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "bpf/allocate.h"
#include "ir/analysis.h"

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

// ---- Stack layout.
//
// The stack has 512 bytes, so objects that are never live at the same time share bytes. For spilled registers this is
// exact: loads and stores are their only uses (allocate.h). The address of a slot can be in registers and arguments
// of calls; `slot_ranges` tracks it through sums and block parameters, and treats a slot as live everywhere if its
// address is stored to memory or escapes otherwise.

namespace {

// Eight bytes of the stack: the segments of the code in which they are taken, by start, with their ends.
using Taken = std::map<uint32_t, uint32_t>;

bool is_free(const Taken& taken, const Range& range) {
  return std::ranges::none_of(range, [&](const Segment& segment) {
    const auto next = taken.lower_bound(segment.start);
    return (next != taken.end() && next->first < segment.end) ||
           (next != taken.begin() && std::prev(next)->second > segment.start);
  });
}

// The stack below `base`, in units of eight bytes. It grows as needed.
class Units {
 public:
  // Takes the first `count` units that are free in the whole range; returns the number of the first.
  size_t take(size_t count, const Range& range) {
    size_t first = 0;
    for (size_t unit = 0; unit < first + count; ++unit)
      if (unit < taken_.size() && !is_free(taken_[unit], range)) first = unit + 1;
    if (taken_.size() < first + count) taken_.resize(first + count);
    for (size_t unit = first; unit < first + count; ++unit)
      for (const Segment& segment : range) taken_[unit].emplace(segment.start, segment.end);
    return first;
  }
  size_t size() const { return taken_.size(); }

 private:
  std::vector<Taken> taken_;
};

// First fit, largest first: places each object at the first position that no object with an overlapping live range
// occupies. Returns the number of bytes used below `base`.
uint32_t place_by_ranges(std::vector<StackObject>& objects, uint32_t first, const std::vector<Range>& ranges,
                         uint32_t base) {
  constexpr uint32_t kUnitBytes = 8;
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return objects[first + a].size_bytes > objects[first + b].size_bytes;
  });
  Units units;
  for (uint32_t item : order) {
    if (ranges[item].empty()) continue;
    StackObject& object = objects[first + item];
    const uint32_t count = (std::max(object.size_bytes, 1u) + kUnitBytes - 1) / kUnitBytes;
    const auto end = static_cast<uint32_t>(units.take(count, ranges[item])) + count;
    object.offset = -static_cast<int32_t>(base + end * kUnitBytes);
  }
  return static_cast<uint32_t>(units.size()) * kUnitBytes;
}

}  // namespace

void place_objects(const ir::Function& function, MachineFunction& machine) {
  uint32_t bytes = place_by_ranges(machine.objects, 0, slot_ranges(function), 0);
  uint32_t spilled = static_cast<uint32_t>(machine.objects.size()) - machine.slot_count;
  bytes +=
      place_by_ranges(machine.objects, machine.slot_count, live_ranges(machine, spilled, touch_spill_slots), bytes);
  machine.stack_bytes = bytes;
}

}  // namespace espy::bpf
