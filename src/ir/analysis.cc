#include "ir/analysis.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <utility>

namespace espy::ir {

Effect effect_of(const Instruction& instruction) {
  if (instruction.op == Op::k_call) return info(instruction.helper).effect;
  if (instruction.op == Op::k_kfunc && instruction.is_pure) return Effect::pure;
  return info(instruction.op).effect;
}

bool is_same_operation(const Instruction& a, const Instruction& b) {
  return a.op == b.op && a.imm == b.imm && a.width == b.width && a.is_signed == b.is_signed && a.is_pure == b.is_pure &&
         a.condition == b.condition && a.helper == b.helper && a.map == b.map && a.slot == b.slot &&
         a.function == b.function && a.operands == b.operands && a.targets.empty() && b.targets.empty();
}

bool is_simple(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::k_konst:
    case Op::k_slot:
    case Op::k_map:
    case Op::k_map_value:
    case Op::k_func: return true;
    default: return false;
  }
}

Predecessors::Predecessors(const Function& function) : starts_(function.blocks.size() + 1) {
  auto for_each_edge = [&](auto visit) {
    for (BlockId block : function.blocks.ids())
      for (const Target& target : terminator(function, block).targets) visit(block, target.block);
  };
  for_each_edge([&](BlockId, BlockId to) { ++starts_[to.index + 1]; });
  for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  blocks_.resize(starts_.back());
  std::vector<uint32_t> next = starts_;
  for_each_edge([&](BlockId from, BlockId to) { blocks_[next[to.index]++] = from; });
}

std::vector<BlockId> reverse_post_order(const Function& function) {
  // The targets are looked up once: each of the steps to them misses the cache in a long function.
  struct Visit {
    BlockId block;
    const std::vector<Target>* targets;
    size_t left;
  };
  std::vector<BlockId> order;
  if (function.blocks.empty()) return order;
  order.reserve(function.blocks.size());
  std::vector<bool> is_seen(function.blocks.size());
  std::vector<Visit> stack;
  const auto enter = [&](BlockId block) {
    is_seen[block.index] = true;
    const std::vector<Target>& targets = terminator(function, block).targets;
    stack.push_back({block, &targets, targets.size()});
  };
  enter(BlockId{0});
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.left == 0) {
      order.push_back(top.block);
      stack.pop_back();
      continue;
    }
    // Visits targets in reverse, so that the first target, the likely one, follows its block in the final order.
    const BlockId to = (*top.targets)[--top.left].block;
    if (!is_seen[to.index]) enter(to);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Dominators::Dominators(const Function& function)
    : order_(reverse_post_order(function)), number_(function.blocks.size(), kUnreachable) {
  for (uint32_t i = 0; i < order_.size(); ++i) number_[order_[i].index] = i;
  find_parents(function);
  number_tree();
}

// Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm": intersects the predecessors in the current tree until
// it is stable. Structured control flow needs one round, and a second one to detect stability.
void Dominators::find_parents(const Function& function) {
  parent_.resize(function.blocks.size());
  if (order_.empty()) return;
  Predecessors predecessors(function);
  auto meet = [&](BlockId a, BlockId b) {
    while (a != b) {
      while (number_[a.index] > number_[b.index]) a = parent_[a.index];
      while (number_[b.index] > number_[a.index]) b = parent_[b.index];
    }
    return a;
  };
  parent_[order_[0].index] = order_[0];
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 1; i < order_.size(); ++i) {
      BlockId parent;
      for (BlockId from : predecessors[order_[i]])
        if (is_reachable(from) && parent_[from.index].valid()) parent = parent.valid() ? meet(parent, from) : from;
      if (parent_[order_[i].index] != parent) {
        parent_[order_[i].index] = parent;
        changed = true;
      }
    }
  }
  parent_[order_[0].index] = {};
}

void Dominators::number_tree() {
  size_t count = parent_.size();
  child_starts_.assign(count + 1, 0);
  for (BlockId block : order_)
    if (parent(block).valid()) ++child_starts_[parent(block).index + 1];
  for (size_t i = 1; i <= count; ++i) child_starts_[i] += child_starts_[i - 1];
  children_.resize(child_starts_.back());
  std::vector<uint32_t> next(child_starts_.begin(), child_starts_.end() - 1);
  for (BlockId block : order_)
    if (parent(block).valid()) children_[next[parent(block).index]++] = block;

  // Subtree sizes, bottom-up: a parent precedes its children in order_.
  std::vector<uint32_t> size(count, 1);
  for (size_t i = order_.size(); i-- > 1;) size[parent(order_[i]).index] += size[order_[i].index];
  first_.assign(count, 0);
  last_.assign(count, 0);
  for (BlockId block : order_) {
    last_[block.index] = first_[block.index] + size[block.index] - 1;
    uint32_t at = first_[block.index] + 1;
    for (BlockId child : children(block)) {
      first_[child.index] = at;
      at += size[child.index];
    }
  }
}

bool Dominators::dominates(BlockId a, BlockId b) const {
  return is_reachable(a) && is_reachable(b) && first_[a.index] <= first_[b.index] && first_[b.index] <= last_[a.index];
}

std::vector<BlockId> Dominators::preorder() const {
  std::vector<BlockId> blocks(order_.size());
  for (BlockId block : order_) blocks[first_[block.index]] = block;
  return blocks;
}

std::vector<std::vector<BlockId>> dominance_frontiers(const Function& function, const Dominators& dominators) {
  std::vector<std::vector<BlockId>> frontiers(function.blocks.size());
  Predecessors predecessors(function);
  for (BlockId join : dominators.order()) {
    if (predecessors[join].size() < 2) continue;
    for (BlockId from : predecessors[join]) {
      if (!dominators.is_reachable(from)) continue;
      for (BlockId at = from; at.valid() && at != dominators.parent(join); at = dominators.parent(at)) {
        std::vector<BlockId>& frontier = frontiers[at.index];
        if (!frontier.empty() && frontier.back() == join) break;  // so do the blocks above on this path
        frontier.push_back(join);
      }
    }
  }
  return frontiers;
}

std::vector<uint32_t> use_counts(const Function& function) {
  std::vector<uint32_t> counts(function.values.size());
  for (const Block& block : function.blocks)
    for (ValueId id : block.instructions)
      for_each_use(function.values[id], [&](ValueId used) { ++counts[used.index]; });
  return counts;
}

std::vector<BlockId> defining_blocks(const Function& function) {
  std::vector<BlockId> blocks(function.values.size());
  for (BlockId block : function.blocks.ids()) {
    for (ValueId id : function.blocks[block].parameters) blocks[id.index] = block;
    for (ValueId id : function.blocks[block].instructions) blocks[id.index] = block;
  }
  return blocks;
}

ValueId resolve(std::vector<ValueId>& replacement, ValueId value) {
  auto next = [&](ValueId v) { return v.index < replacement.size() ? replacement[v.index] : ValueId{}; };
  ValueId last = value;
  while (next(last).valid()) last = next(last);
  while (next(value).valid()) {
    ValueId step = next(value);
    replacement[value.index] = last;
    value = step;
  }
  return last;
}

void replace_all_uses(Function& function, std::vector<ValueId>& replacement) {
  for (const Block& block : function.blocks)
    for (ValueId id : block.instructions)
      for_each_use(function.values[id], [&](ValueId& used) { used = resolve(replacement, used); });
}

// Value by value: from each block with a use, walks the predecessors up to the definition. Every step adds one entry to
// the result, so the time is linear in the size of the result.
Liveness liveness(const Function& function, bool (*is_tracked)(const Instruction&)) {
  size_t block_count = function.blocks.size();
  Liveness live{std::vector<std::vector<ValueId>>(block_count), std::vector<std::vector<ValueId>>(block_count)};
  Predecessors predecessors(function);
  std::vector<BlockId> defined = defining_blocks(function);

  std::vector<uint32_t> starts(function.values.size() + 1);
  auto for_each_outside_use = [&](auto visit) {
    for (BlockId block : function.blocks.ids())
      for (ValueId id : function.blocks[block].instructions)
        for_each_use(function.values[id], [&](ValueId used) {
          if (defined[used.index] != block && (!is_tracked || is_tracked(function.values[used]))) visit(used, block);
        });
  };
  for_each_outside_use([&](ValueId used, BlockId) { ++starts[used.index + 1]; });
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  std::vector<BlockId> users(starts.back());
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  for_each_outside_use([&](ValueId used, BlockId block) { users[next[used.index]++] = block; });

  std::vector<BlockId> work;
  auto add = [](std::vector<ValueId>& list, ValueId value) {
    if (!list.empty() && list.back() == value) return false;
    list.push_back(value);
    return true;
  };
  for (ValueId value : function.values.ids()) {
    work.assign(users.begin() + starts[value.index], users.begin() + starts[value.index + 1]);
    while (!work.empty()) {
      BlockId block = work.back();
      work.pop_back();
      if (!add(live.in[block.index], value)) continue;
      for (BlockId from : predecessors[block]) {
        add(live.out[from.index], value);
        if (from != defined[value.index]) work.push_back(from);
      }
    }
  }
  return live;
}

void keep_blocks(Function& function, const std::vector<bool>& keep) {
  if (std::find(keep.begin(), keep.end(), false) == keep.end()) return;
  std::vector<BlockId> new_id(function.blocks.size());
  Table<BlockId, Block> blocks;
  for (BlockId block : function.blocks.ids())
    if (keep[block.index]) new_id[block.index] = blocks.add(std::move(function.blocks[block]));
  function.blocks = std::move(blocks);
  for (BlockId block : function.blocks.ids())
    for (Target& target : terminator(function, block).targets) {
      target.block = new_id[target.block.index];
      CHECK(target.block.valid());
    }
}

bool is_atomic(Op op) { return op >= Op::k_atomic_add && op <= Op::k_atomic_cmpxchg; }

bool accesses_memory(Op op) {
  return op == Op::k_load || op == Op::k_store || op == Op::k_store_release || is_atomic(op);
}

bool is_call(Op op) { return op == Op::k_call || op == Op::k_kfunc || op == Op::k_call_function; }

bool writes_arguments(const Instruction& call) {
  if (effect_of(call) != Effect::write) return false;
  if (call.op != Op::k_call) return true;
  switch (call.helper) {
    case Helper::map_update_elem:
    case Helper::map_delete_elem:
    case Helper::trace_printk:
    case Helper::get_prandom_u32:
    case Helper::perf_event_output:
    case Helper::get_stackid:
    case Helper::send_signal:
    case Helper::send_signal_thread:
    case Helper::seq_printf:
    case Helper::seq_write:
    case Helper::ringbuf_output: return false;
    default: return true;
  }
}

bool writes_elsewhere(const Instruction& call) {
  if (effect_of(call) != Effect::write) return false;
  if (call.op != Op::k_call) return true;
  switch (call.helper) {
    case Helper::trace_printk:
    case Helper::get_prandom_u32:
    case Helper::get_current_comm:
    case Helper::probe_read_user:
    case Helper::probe_read_kernel:
    case Helper::probe_read_user_str:
    case Helper::probe_read_kernel_str: return false;
    default: return true;
  }
}

Memory::Memory(const Function& function)
    : locations_(function.values.size()), is_private_(function.slots.size(), true) {
  for (uint32_t i = 0; i < locations_.size(); ++i) locations_[i].id = i;
  std::vector<BlockId> order = reverse_post_order(function);
  for (BlockId block : order)
    for (ValueId id : function.blocks[block].instructions) locate(function, id);
  for (BlockId block : order)
    for (ValueId id : function.blocks[block].instructions) find_escapes(function.values[id]);
}

void Memory::locate(const Function& function, ValueId id) {
  const Instruction& instruction = function.values[id];
  Location& location = locations_[id.index];
  if (instruction.op == Op::k_slot) location = {Base::kSlot, instruction.slot.index, 0, true};
  if (instruction.op == Op::k_map_value) location = {Base::kMap, instruction.map.index, instruction.imm, true};
  if (instruction.op != Op::k_add) return;
  const Location& base = locations_[instruction.operands[0].index];
  const Instruction& step = function.values[instruction.operands[1]];
  if (step.op == Op::k_konst && step.imm == static_cast<int32_t>(step.imm)) {
    location = base;
    location.offset += step.imm;
  } else if (base.base != Base::kOther) {
    location = base;
    location.is_exact = false;
  }
}

void Memory::find_escapes(const Instruction& instruction) {
  auto escape = [&](ValueId value) {
    if (locations_[value.index].is_slot()) is_private_[locations_[value.index].id] = false;
  };
  size_t harmless = 0;  // number of leading operands that do not escape
  switch (instruction.op) {
    case Op::k_load:
    case Op::k_store:
    case Op::k_store_release:
    case Op::k_zero:
    case Op::k_add: harmless = 1; break;
    case Op::k_copy: harmless = 2; break;
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function:
    case Op::k_branch: harmless = instruction.operands.size(); break;
    default: harmless = is_atomic(instruction.op) || (instruction.op >= Op::k_eq && instruction.op <= Op::k_sle);
  }
  for (size_t i = harmless; i < instruction.operands.size(); ++i) escape(instruction.operands[i]);
  for (const Target& target : instruction.targets)
    for (ValueId argument : target.arguments) escape(argument);
}

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
