#include "ir/analysis.h"

#include <algorithm>

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

}  // namespace espy::ir
