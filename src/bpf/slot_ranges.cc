#include "bpf/slot_ranges.h"

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
  std::vector<bool> reach(const std::vector<bool>& uses, bool backwards) const;
  Range range_of(uint32_t slot) const;

  const Function& function_;
  std::vector<BlockId> order_;
  std::vector<uint32_t> slot_of_;  // by value: the slot that it points into
  std::vector<bool> escapes_;      // by slot
  // By slot: places of its uses, ascending.
  std::vector<std::vector<uint32_t>> uses_;
  std::vector<uint32_t> starts_;  // by block: number of its first instruction; parameters have none
};

std::vector<Range> SlotRanges::run() {
  find_addresses();
  find_escapes();
  find_uses();
  std::vector<Range> ranges(function_.slots.size());
  for (uint32_t slot = 0; slot < ranges.size(); ++slot) {
    if (escapes_[slot])
      ranges[slot] = {{0, ~0u}};
    else if (!uses_[slot].empty())
      ranges[slot] = range_of(slot);
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

void SlotRanges::find_uses() {
  uses_.resize(function_.slots.size());
  starts_.assign(function_.blocks.size() + 1, 0);
  uint32_t place = 0;
  for (BlockId block : function_.blocks.ids()) {
    starts_[block.index] = place;
    for (ValueId id : function_.blocks[block].instructions) {
      for_each_use(function_.values[id], [&](ValueId used) {
        uint32_t slot = slot_of_[used.index];
        if (slot != kNoSlot && (uses_[slot].empty() || uses_[slot].back() != place)) uses_[slot].push_back(place);
      });
      ++place;
    }
  }
  starts_.back() = place;
}

// Blocks at whose end (or, backwards, start) a use lies behind (ahead).
std::vector<bool> SlotRanges::reach(const std::vector<bool>& uses, bool backwards) const {
  std::vector<bool> reached = uses;
  Predecessors predecessors(function_);
  std::vector<BlockId> todo;
  for (BlockId block : order_)
    if (uses[block.index]) todo.push_back(block);
  auto visit = [&](BlockId block) {
    if (reached[block.index]) return;
    reached[block.index] = true;
    todo.push_back(block);
  };
  while (!todo.empty()) {
    BlockId block = todo.back();
    todo.pop_back();
    if (backwards) {
      for (BlockId from : predecessors[block]) visit(from);
    } else {
      for (const ir::Target& target : terminator(function_, block).targets) visit(target.block);
    }
  }
  return reached;
}

// A slot is in use between any use before and any use behind: no store is taken for the start of a new life, so within
// a loop it is in use all the way round.
Range SlotRanges::range_of(uint32_t slot) const {
  std::vector<bool> uses(function_.blocks.size());
  std::vector<uint32_t> first(uses.size()), last(uses.size());
  size_t next = 0;
  for (uint32_t block = 0; block < uses.size(); ++block) {
    for (; next < uses_[slot].size() && uses_[slot][next] < starts_[block + 1]; ++next) {
      if (!uses[block]) first[block] = uses_[slot][next];
      uses[block] = true;
      last[block] = uses_[slot][next];
    }
  }
  std::vector<bool> behind = reach(uses, false), ahead = reach(uses, true);
  Predecessors predecessors(function_);
  Range range;
  for (BlockId block : function_.blocks.ids()) {
    uint32_t b = block.index;
    if (!behind[b] || !ahead[b]) continue;
    bool is_in = false, is_out = false;
    for (BlockId from : predecessors[block]) is_in |= behind[from.index];
    for (const ir::Target& target : terminator(function_, block).targets) is_out |= ahead[target.block.index];
    uint32_t start = is_in ? starts_[b] : first[b];
    uint32_t end = is_out ? starts_[b + 1] : last[b] + 1;
    if (!range.empty() && range.back().end >= start)
      range.back().end = end;
    else
      range.push_back({start, end});
  }
  return range;
}

}  // namespace

std::vector<Range> slot_ranges(const Function& function) { return SlotRanges(function).run(); }

}  // namespace espy::bpf
