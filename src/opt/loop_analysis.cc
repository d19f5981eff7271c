#include "opt/loop_analysis.h"

#include <algorithm>

#include "ir/analysis.h"

namespace espy::opt {

using namespace ir;

namespace {

constexpr uint32_t kMaxMemoryBytes = 256;

}  // namespace

std::vector<Loop> find_loops(const Function& function) {
  const Dominators dominators(function);
  const Predecessors predecessors(function);
  std::map<BlockId, Loop> by_header;
  for (BlockId latch : dominators.order()) {
    for (const Target& target : terminator(function, latch).targets) {
      if (!dominators.dominates(target.block, latch)) continue;
      Loop& loop = by_header[target.block];
      loop.header = target.block;
      loop.blocks.insert(target.block);
      std::vector<BlockId> todo = {latch};
      while (!todo.empty()) {
        const BlockId block = todo.back();
        todo.pop_back();
        if (!dominators.is_reachable(block) || !loop.blocks.insert(block).second) continue;
        for (BlockId from : predecessors[block]) todo.push_back(from);
      }
    }
  }
  std::vector<Loop> loops;
  for (auto& [header, loop] : by_header) loops.push_back(std::move(loop));
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return a.blocks.size() < b.blocks.size(); });
  return loops;
}

Pointers::Pointers(const Function& function)
    : function_(function), is_pointer_(function.values.size()), is_offset_(function.values.size()) {
  const auto repeat = [&](const auto& step) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Block& block : function_.blocks)
        for (ValueId id : block.instructions) changed |= step(id);
    }
  };
  find_read_through();
  repeat([&](ValueId id) { return visit(id); });
  repeat([&](ValueId id) { return visit_offset(id, is_offset_); });
}

std::vector<bool> Pointers::offsets_outside(const std::set<BlockId>& blocks) const {
  std::vector<bool> out(function_.values.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockId block : function_.blocks.ids()) {
      if (!blocks.contains(block)) {
        for (ValueId id : function_.blocks[block].instructions) changed |= visit_offset(id, out);
        continue;
      }
      // What leaves these blocks as an argument.
      for (const Target& target : terminator(function_, block).targets) {
        if (blocks.contains(target.block)) continue;
        const auto& parameters = function_.blocks[target.block].parameters;
        for (size_t i = 0; i < target.arguments.size(); ++i) {
          const ValueId argument = target.arguments[i];
          if (!out[parameters[i].index] || out[argument.index] || is_pointer_[argument.index]) continue;
          out[argument.index] = changed = true;
        }
      }
    }
  }
  return out;
}

bool Pointers::is_checked_in(ValueId value, const std::set<BlockId>& blocks) const {
  const auto checks = checks_.find(value);
  return checks != checks_.end() &&
         std::ranges::any_of(checks->second, [&](BlockId block) { return blocks.contains(block); });
}

bool Pointers::must_not_be_stored(ValueId value, const std::set<BlockId>& blocks) const {
  if (is_pointer_[value.index]) return true;
  if (!is_offset_[value.index]) return false;
  const auto checks = checks_.find(value);
  return checks == checks_.end() ||
         !std::includes(blocks.begin(), blocks.end(), checks->second.begin(), checks->second.end());
}

void Pointers::find_read_through() {
  is_read_through_.resize(function_.values.size());
  for (BlockId block : function_.blocks.ids()) {
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& each = function_.values[id];
      if (each.op == Op::k_branch && each.condition != Condition::eq && each.condition != Condition::ne)
        for (ValueId operand : each.operands) checks_[operand].insert(block);
      const bool reads_any_address = each.op == Op::k_call && info(each.helper).name.starts_with("probe_read");
      const bool is_access = each.op >= Op::k_load && each.op <= Op::k_copy;
      const bool is_call = each.op == Op::k_call || each.op == Op::k_kfunc || each.op == Op::k_call_function;
      if (is_call && !reads_any_address)
        for (ValueId operand : each.operands) note_read_through(operand);
      if (is_access && !each.operands.empty()) note_read_through(each.operands[0]);
      if (each.op == Op::k_copy) note_read_through(each.operands[1]);
    }
  }
}

void Pointers::note_read_through(ValueId value) {
  if (is_read_through_[value.index]) return;
  is_read_through_[value.index] = true;
  const Instruction& each = function_.values[value];
  if (each.op == Op::k_add || each.op == Op::k_sub)
    for (ValueId operand : each.operands) note_read_through(operand);
}

bool Pointers::visit(ValueId id) {
  const Instruction& each = function_.values[id];
  bool changed = false;
  for (const Target& target : each.targets)
    for (size_t i = 0; i < target.arguments.size(); ++i)
      if (is_pointer_[target.arguments[i].index]) changed |= mark(function_.blocks[target.block].parameters[i]);
  return (is_pointer_[id.index] || makes_pointer(id, each)) ? mark(id) || changed : changed;
}

bool Pointers::mark(ValueId value) {
  if (is_pointer_[value.index]) return false;
  return is_pointer_[value.index] = true;
}

// Marks the operands of pointer arithmetic, transitively, up to values that are checked or masked.
bool Pointers::visit_offset(ValueId id, std::vector<bool>& is_offset) const {
  const Instruction& each = function_.values[id];
  bool changed = false;
  const auto mark_offset = [&](ValueId value) {
    if (is_offset[value.index] || is_pointer_[value.index]) return;
    is_offset[value.index] = changed = true;
  };
  for (const Target& target : each.targets)
    for (size_t i = 0; i < target.arguments.size(); ++i)
      if (is_offset[function_.blocks[target.block].parameters[i].index]) mark_offset(target.arguments[i]);
  const bool is_masked = each.op == Op::k_and && function_.values[each.operands[1]].op == Op::k_konst;
  const bool has_bounds = is_masked || checks_.contains(id);
  const bool is_arithmetic = info(each.op).effect == Effect::pure && (is_offset[id.index] || is_pointer_[id.index]);
  if (is_arithmetic && !has_bounds)
    for (ValueId operand : each.operands) mark_offset(operand);
  return changed;
}

bool Pointers::makes_pointer(ValueId id, const Instruction& each) const {
  switch (each.op) {
    case Op::k_context:
    case Op::k_param:
    case Op::k_slot:
    case Op::k_map:
    case Op::k_map_value:
    case Op::k_func: return true;
    case Op::k_add:
    case Op::k_sub: return is_pointer_[each.operands[0].index] || is_pointer_[each.operands[1].index];
    case Op::k_load: return is_read_through_[id.index] && !is_bpf_memory(each.operands[0]);
    case Op::k_kfunc: return is_read_through_[id.index];
    case Op::k_call: return each.is_nullable || is_read_through_[id.index];
    default: return false;
  }
}

bool Pointers::is_bpf_memory(ValueId address) const {
  const Instruction* at = &function_.values[address];
  while (at->op == Op::k_add) at = &function_.values[at->operands[0]];
  return at->op == Op::k_slot || at->op == Op::k_map_value;
}

bool is_rematerializable(const Function& function, ValueId value) {
  const Instruction& each = function.values[value];
  const bool is_address = each.op == Op::k_add || each.op == Op::k_sub || each.op == Op::k_and || each.op == Op::k_shl;
  if (is_address)
    return is_rematerializable(function, each.operands[0]) && is_rematerializable(function, each.operands[1]);
  const bool is_cpu = each.op == Op::k_call && each.helper == Helper::get_smp_processor_id;
  return is_cpu || is_simple(function.values[value]);
}

bool CrossingValues::find() {
  return loop_.header.index != 0 && find_live_in() && find_exits() && find_shared_slots() && find_live_out() &&
         lay_out_memory();
}

bool CrossingValues::find_live_in() {
  if (std::ranges::any_of(function_.blocks[loop_.header].parameters,
                          [&](ValueId parameter) { return must_not_be_stored(parameter); }))
    return false;
  for (BlockId block : loop_.blocks) {
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& each = function_.values[id];
      if (each.op == Op::k_context || each.op == Op::k_param) return false;
      for (ValueId operand : each.operands)
        if (!use(operand)) return false;
      for (const Target& target : each.targets)
        for (ValueId argument : target.arguments)
          if (is_inside(target.block) && !use(argument)) return false;
    }
  }
  return true;
}

// Returns false if the value cannot be made available inside the loop.
bool CrossingValues::use(ValueId value) {
  if (is_inside(value) || is_simple(function_.values[value])) return true;
  if (!must_not_be_stored(value)) {
    live_in_.insert(value);
  } else if (is_rematerializable(function_, value)) {
    rematerialized_in_.insert(value);
  } else {
    return false;
  }
  return true;
}

bool CrossingValues::find_exits() {
  for (BlockId block : loop_.blocks) {
    const Instruction& end = terminator(function_, block);
    if (end.targets.empty()) return false;
    for (size_t i = 0; i < end.targets.size(); ++i)
      if (!is_inside(end.targets[i].block)) exits_.push_back({block, i});
  }
  return !exits_.empty();
}

// A slot whose content does not cross the border exists on both sides. A slot whose content does is part of the memory;
// returns false if such a slot holds pointers.
bool CrossingValues::find_shared_slots() {
  std::set<SlotId> inside, outside, holding_pointers;
  const auto base_slot = [&](ValueId address) {
    const Instruction* at = &function_.values[address];
    while (at->op == Op::k_add) at = &function_.values[at->operands[0]];
    return at->op == Op::k_slot ? at->slot : SlotId{};
  };
  for (BlockId block : reverse_post_order(function_)) {
    std::set<SlotId>& side = is_inside(block) ? inside : outside;
    for (ValueId id : function_.blocks[block].instructions) {
      const Instruction& each = function_.values[id];
      for_each_use(each, [&](const ValueId& used) {
        if (const SlotId slot = base_slot(used); slot.valid()) side.insert(slot);
      });
      if (each.op != Op::k_store || !pointers_[each.operands[1]]) continue;
      if (const SlotId slot = base_slot(each.operands[0]); slot.valid()) holding_pointers.insert(slot);
    }
  }
  const SlotLiveness liveness(function_);
  for (SlotId slot : inside) {
    bool is_shared = liveness.is_live_at(loop_.header, slot);
    for (const Exit& exit : exits_)
      is_shared |= liveness.is_live_at(terminator(function_, exit.from).targets[exit.target].block, slot);
    if (!is_shared || !outside.contains(slot)) continue;
    if (holding_pointers.contains(slot)) return false;
    shared_slots_[slot] = 0;
  }
  return true;
}

bool CrossingValues::find_live_out() {
  const auto leave = [&](ValueId value) {
    if (is_inside(value)) (is_simple(function_.values[value]) ? rematerialized_out_ : live_out_).insert(value);
  };
  for (const Exit& exit : exits_)
    for (ValueId argument : terminator(function_, exit.from).targets[exit.target].arguments) leave(argument);
  for (BlockId block : reverse_post_order(function_)) {
    if (is_inside(block)) continue;
    for (ValueId id : function_.blocks[block].instructions)
      for_each_use(function_.values[id], [&](const ValueId& used) { leave(used); });
  }
  return std::ranges::none_of(live_out_, [&](ValueId value) { return must_not_be_stored(value); }) && !loses_bounds();
}

// Of a number that comes back through memory the verifier knows no bounds, and what the function has checked it does
// not know outside: true if a number is an offset there that leaves the loop, or that the loop checks.
bool CrossingValues::loses_bounds() const {
  const std::vector<bool> is_offset = pointers_.offsets_outside(loop_.blocks);
  const auto is_lost = [&](ValueId value) {
    return is_offset[value.index] && (is_inside(value) || pointers_.is_checked_in(value, loop_.blocks));
  };
  return std::ranges::any_of(function_.values.ids(), is_lost);
}

bool CrossingValues::lay_out_memory() {
  const auto place = [&](ValueId value) {
    if (value_offsets_.try_emplace(value, memory_bytes_).second) memory_bytes_ += 8;
  };
  for (ValueId parameter : function_.blocks[loop_.header].parameters) place(parameter);
  for (ValueId value : live_in_) place(value);
  for (ValueId value : live_out_) place(value);
  for (auto& [slot, offset] : shared_slots_) {
    offset = memory_bytes_;
    memory_bytes_ += (function_.slots[slot].size_bytes + 7) / 8 * 8;
  }
  memory_bytes_ = std::max(memory_bytes_, 8u);
  return memory_bytes_ <= kMaxMemoryBytes;
}

}  // namespace espy::opt
