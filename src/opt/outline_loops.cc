// outline_loops: moves loops into functions, each of which the kernel's verifier checks only once.
//
// The verifier follows every path of a program, and repeats a loop until it reaches no new state; each branch and loop
// before it multiplies the states in which it is entered. The limit of a million steps is reached soon. A global
// function is verified separately, for any contents of the memory that its parameter points to; at a call the verifier
// only assumes that this memory has changed (Linux 5.12). So in functions that are too complex the innermost loops are
// moved into global functions, then the loops around them:
//
//     b1: jump b2(v1)                          b1: jump c(v1)
//     b2(i): ... branch ..., b3, b4     =>     c(i): store [memory], i; r = call loop(memory); load ...; jump b4
//     b3: ... jump b2(i2)
//     b4: ...
//
// Scalars that are live into or out of the loop are passed in `memory`, an object on the caller's stack, which also
// holds stack objects that are used inside and outside the loop. The function returns the index of the edge by which
// the loop exits. Pointers cannot be passed in memory: a loop that needs a pointer from outside is not outlined, unless
// the pointer can be rematerialized (`slot`, `map`).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/analysis.h"
#include "ir/builder.h"
#include "ir/slot_liveness.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

constexpr uint32_t kMaxMemoryBytes = 256;

struct Loop {
  BlockId header;
  std::set<BlockId> blocks;
};

struct Exit {  // an edge out of the loop
  BlockId from;
  size_t target;
};

// Returns the smallest loops first, so that a loop precedes those that contain it.
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

// Computes which values may be pointers that the verifier tracks. A value loaded from the context or through a pointer
// counts as a pointer if the function reads through it.
class Pointers {
 public:
  explicit Pointers(const Function& function)
      : function_(function), is_pointer_(function.values.size()), is_offset_(function.values.size()) {
    find_read_through();
    repeat(&Pointers::visit);
    repeat(&Pointers::visit_offset);
  }
  // Returns true if passing the value through memory would lose what the verifier must know about it: that it is a
  // pointer, or, for an offset that is added to a pointer, bounds that were checked outside of `blocks`.
  bool must_not_be_stored(ValueId value, const std::set<BlockId>& blocks) const {
    if (is_pointer_[value.index]) return true;
    if (!is_offset_[value.index]) return false;
    const auto checks = checks_.find(value);
    return checks == checks_.end() ||
           !std::includes(blocks.begin(), blocks.end(), checks->second.begin(), checks->second.end());
  }
  bool operator[](ValueId value) const { return is_pointer_[value.index]; }

 private:
  void repeat(bool (Pointers::*step)(ValueId)) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Block& block : function_.blocks)
        for (ValueId id : block.instructions) changed |= (this->*step)(id);
    }
  }
  void find_read_through() {
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
  void note_read_through(ValueId value) {
    if (is_read_through_[value.index]) return;
    is_read_through_[value.index] = true;
    const Instruction& each = function_.values[value];
    if (each.op == Op::k_add || each.op == Op::k_sub)
      for (ValueId operand : each.operands) note_read_through(operand);
  }

  bool visit(ValueId id) {
    const Instruction& each = function_.values[id];
    bool changed = false;
    for (const Target& target : each.targets)
      for (size_t i = 0; i < target.arguments.size(); ++i)
        if (is_pointer_[target.arguments[i].index]) changed |= mark(function_.blocks[target.block].parameters[i]);
    return (is_pointer_[id.index] || makes_pointer(id, each)) ? mark(id) || changed : changed;
  }
  bool mark(ValueId value) {
    if (is_pointer_[value.index]) return false;
    return is_pointer_[value.index] = true;
  }
  // Propagates backwards from `add pointer, offset` to values with bounds of their own.
  bool visit_offset(ValueId id) {
    const Instruction& each = function_.values[id];
    bool changed = false;
    const auto mark_offset = [&](ValueId value) {
      if (is_offset_[value.index] || is_pointer_[value.index]) return;
      is_offset_[value.index] = changed = true;
    };
    for (const Target& target : each.targets)
      for (size_t i = 0; i < target.arguments.size(); ++i)
        if (is_offset_[function_.blocks[target.block].parameters[i].index]) mark_offset(target.arguments[i]);
    const bool is_masked = each.op == Op::k_and && function_.values[each.operands[1]].op == Op::k_konst;
    const bool has_bounds = is_masked || checks_.contains(id);
    const bool is_arithmetic = info(each.op).effect == Effect::pure && (is_offset_[id.index] || is_pointer_[id.index]);
    if (is_arithmetic && !has_bounds)
      for (ValueId operand : each.operands) mark_offset(operand);
    return changed;
  }
  bool makes_pointer(ValueId id, const Instruction& each) const {
    switch (each.op) {
      case Op::k_context:
      case Op::k_param:
      case Op::k_slot:
      case Op::k_map:
      case Op::k_map_value:
      case Op::k_func: return true;
      case Op::k_add:
      case Op::k_sub: return is_pointer_[each.operands[0].index] || is_pointer_[each.operands[1].index];
      case Op::k_load: return is_read_through_[id.index] && !is_our_memory(each.operands[0]);
      case Op::k_kfunc: return is_read_through_[id.index];
      case Op::k_call: return each.is_nullable || is_read_through_[id.index];
      default: return false;
    }
  }
  bool is_our_memory(ValueId address) const {
    const Instruction* at = &function_.values[address];
    while (at->op == Op::k_add) at = &function_.values[at->operands[0]];
    return at->op == Op::k_slot || at->op == Op::k_map_value;
  }

  const Function& function_;
  std::vector<bool> is_pointer_, is_offset_, is_read_through_;
  std::map<ValueId, std::set<BlockId>> checks_;  // the blocks that compare a value by order
};

// Returns the length of the longest chain of calls that starts in these blocks.
template <class Blocks>
uint32_t call_depth(const Module& module, const Function& function, const Blocks& blocks) {
  uint32_t deepest = 0;
  for (BlockId block : blocks) {
    for (ValueId id : function.blocks[block].instructions) {
      const Instruction& each = function.values[id];
      if (each.op != Op::k_call_function) continue;
      const Function& called = module.functions[each.function];
      deepest = std::max(deepest, 1 + call_depth(module, called, called.blocks.ids()));
    }
  }
  return deepest;
}

void drop_unreachable(Function& function) {
  std::vector<bool> keep(function.blocks.size());
  for (BlockId block : reverse_post_order(function)) keep[block.index] = true;
  keep_blocks(function, keep);
}

// Moves one loop of `from` into a function.
class Extraction {
 public:
  Extraction(Function& from, const Loop& loop, FunctionId id)
      : from_(from), loop_(loop), id_(id), pointers_(from), copies_(from.values.size()) {}

  // Returns the new function, which `from` calls now; nullopt, with `from` unchanged, if the loop cannot be moved.
  std::optional<Function> extract(const Module& module, uint32_t max_depth);

 private:
  bool is_inside(BlockId block) const { return loop_.blocks.contains(block); }
  bool is_inside(ValueId value) const { return block_of_[value.index].valid() && is_inside(block_of_[value.index]); }
  bool is_simple(ValueId value) const;  // has no operands: can be rematerialized anywhere
  bool is_rematerializable(ValueId value) const;
  bool look();
  bool take(ValueId value);
  bool look_at_instruction(ValueId id);
  bool look_at_slots();
  void find_live_out();
  bool lay_out_memory();

  void make_blocks(Builder& to);
  void write_entry(Builder& to);
  void copy_instruction(Builder& to, ValueId id);
  ValueId copy_of(Builder& to, ValueId value);
  ValueId slot_address(Builder& to, SlotId slot);
  BlockId exit_block(BlockId from, size_t target) const;
  void write_exits(Builder& to);
  void call_it();
  void leave(Builder& to, ValueId exit, const std::vector<ValueId>& replacement);
  void move_shared_slots();

  Function& from_;
  const Loop& loop_;
  const FunctionId id_;
  const Pointers pointers_;
  std::vector<BlockId> block_of_;
  std::vector<Exit> exits_;
  std::set<ValueId> live_in_, live_out_;     // scalars passed in memory
  std::set<ValueId> addresses_;              // live in, rematerialized inside
  std::set<ValueId> rematerialized_outs_;    // live out, rematerialized outside
  std::map<SlotId, uint32_t> shared_slots_;  // offsets in the memory
  std::map<ValueId, uint32_t> places_;       // offsets in the memory: header parameters, live_in_, live_out_
  uint32_t memory_bytes_ = 0;

  Function out_;
  std::vector<ValueId> copies_;  // by value of `from_`
  std::map<BlockId, BlockId> block_copies_;
  std::vector<BlockId> exit_blocks_;  // by index in exits_
  std::map<SlotId, SlotId> own_slots_;
  BlockId entry_;
  ValueId memory_;      // in `out_`
  SlotId memory_slot_;  // in `from_`
};

// ---- Whether the loop can be moved, and its memory

bool Extraction::is_simple(ValueId value) const {
  const Op op = from_.values[value].op;
  return op == Op::k_konst || op == Op::k_slot || op == Op::k_map || op == Op::k_map_value || op == Op::k_func;
}

bool Extraction::is_rematerializable(ValueId value) const {
  const Instruction& each = from_.values[value];
  // An address in the CPU's part of a map's value.
  const bool is_address = each.op == Op::k_add || each.op == Op::k_sub || each.op == Op::k_and || each.op == Op::k_shl;
  if (is_address) return is_rematerializable(each.operands[0]) && is_rematerializable(each.operands[1]);
  const bool is_cpu = each.op == Op::k_call && each.helper == Helper::get_smp_processor_id;
  return is_cpu || is_simple(value);
}

bool Extraction::take(ValueId value) {
  if (is_inside(value) || is_simple(value)) return true;
  const bool can_be_stored = !pointers_.must_not_be_stored(value, loop_.blocks);
  if (can_be_stored) {
    live_in_.insert(value);
  } else if (is_rematerializable(value)) {
    addresses_.insert(value);
  } else {
    return false;
  }
  return true;
}

bool Extraction::look_at_instruction(ValueId id) {
  const Instruction& each = from_.values[id];
  if (each.op == Op::k_context || each.op == Op::k_param) return false;
  for (ValueId operand : each.operands)
    if (!take(operand)) return false;
  for (const Target& target : each.targets)
    for (ValueId argument : target.arguments)
      if (is_inside(target.block) && !take(argument)) return false;
  return true;
}

bool Extraction::look() {
  if (loop_.header.index == 0) return false;
  block_of_ = defining_blocks(from_);
  for (BlockId block : loop_.blocks) {
    for (ValueId parameter : from_.blocks[block].parameters)
      if (block == loop_.header && pointers_.must_not_be_stored(parameter, loop_.blocks)) return false;
    for (ValueId id : from_.blocks[block].instructions)
      if (!look_at_instruction(id)) return false;
    const Instruction& end = terminator(from_, block);
    if (end.targets.empty()) return false;
    for (size_t i = 0; i < end.targets.size(); ++i)
      if (!is_inside(end.targets[i].block)) exits_.push_back({block, i});
  }
  if (exits_.empty() || !look_at_slots()) return false;
  find_live_out();
  return std::none_of(live_out_.begin(), live_out_.end(),
                      [&](ValueId value) { return pointers_.must_not_be_stored(value, loop_.blocks); }) &&
         lay_out_memory();
}

// A slot with no bytes that are live across the loop's edges is duplicated: caller and function have one each. A slot
// with such bytes becomes part of the memory; if it holds pointers, the loop cannot be moved.
bool Extraction::look_at_slots() {
  std::set<SlotId> inside, outside, holding_pointers;
  const auto base_slot = [&](ValueId address) {
    const Instruction* at = &from_.values[address];
    while (at->op == Op::k_add) at = &from_.values[at->operands[0]];
    return at->op == Op::k_slot ? at->slot : SlotId{};
  };
  for (BlockId block : reverse_post_order(from_)) {
    std::set<SlotId>& side = is_inside(block) ? inside : outside;
    for (ValueId id : from_.blocks[block].instructions) {
      const Instruction& each = from_.values[id];
      for_each_use(each, [&](const ValueId& used) {
        if (const SlotId slot = base_slot(used); slot.valid()) side.insert(slot);
      });
      if (each.op != Op::k_store || !pointers_[each.operands[1]]) continue;
      if (const SlotId slot = base_slot(each.operands[0]); slot.valid()) holding_pointers.insert(slot);
    }
  }
  const SlotLiveness liveness(from_);
  for (SlotId slot : inside) {
    bool is_shared = liveness.is_live_at(loop_.header, slot);
    for (const Exit& exit : exits_)
      is_shared |= liveness.is_live_at(terminator(from_, exit.from).targets[exit.target].block, slot);
    if (!is_shared || !outside.contains(slot)) continue;
    if (holding_pointers.contains(slot)) return false;
    shared_slots_[slot] = 0;
  }
  return true;
}

void Extraction::find_live_out() {
  const auto leave = [&](ValueId value) {
    if (is_inside(value)) (is_simple(value) ? rematerialized_outs_ : live_out_).insert(value);
  };
  for (const Exit& exit : exits_)
    for (ValueId argument : terminator(from_, exit.from).targets[exit.target].arguments) leave(argument);
  for (BlockId block : reverse_post_order(from_)) {
    if (is_inside(block)) continue;
    for (ValueId id : from_.blocks[block].instructions)
      for_each_use(from_.values[id], [&](const ValueId& used) { leave(used); });
  }
}

bool Extraction::lay_out_memory() {
  const auto place = [&](ValueId value) {
    if (places_.try_emplace(value, memory_bytes_).second) memory_bytes_ += 8;
  };
  for (ValueId parameter : from_.blocks[loop_.header].parameters) place(parameter);
  for (ValueId value : live_in_) place(value);
  for (ValueId value : live_out_) place(value);
  for (auto& [slot, offset] : shared_slots_) {
    offset = memory_bytes_;
    memory_bytes_ += (from_.slots[slot].size_bytes + 7) / 8 * 8;
  }
  memory_bytes_ = std::max(memory_bytes_, 8u);
  return memory_bytes_ <= kMaxMemoryBytes;
}

// ---- The new function

std::optional<Function> Extraction::extract(const Module& module, uint32_t max_depth) {
  if (!look() || call_depth(module, from_, loop_.blocks) >= max_depth) return std::nullopt;
  out_.name = fmt::format("{}_loop_{}", from_.name, id_.index);
  out_.parameter_count = 1;
  out_.memory_bytes = memory_bytes_;
  Builder to(out_);
  make_blocks(to);
  write_entry(to);
  for (BlockId block : reverse_post_order(from_)) {
    if (!is_inside(block)) continue;
    to.enter(block_copies_.at(block));
    for (ValueId id : from_.blocks[block].instructions) copy_instruction(to, id);
  }
  write_exits(to);
  call_it();
  move_shared_slots();
  return std::move(out_);
}

void Extraction::make_blocks(Builder& to) {
  entry_ = to.add_block("entry");
  for (BlockId block : loop_.blocks) {
    const BlockId copy = to.add_block(from_.blocks[block].name);
    block_copies_[block] = copy;
    for (ValueId parameter : from_.blocks[block].parameters) copies_[parameter.index] = to.add_block_parameter(copy);
  }
  for (size_t i = 0; i < exits_.size(); ++i) exit_blocks_.push_back(to.add_block("exit"));
}

// The verifier assumes that the argument may be null.
void Extraction::write_entry(Builder& to) {
  const BlockId missing = to.add_block("missing"), start = to.add_block("start");
  to.enter(entry_);
  memory_ = to.param(0);
  to.branch(Condition::eq, memory_, 0, missing, start);
  to.enter(missing);
  to.ret(0);
  to.enter(start);
  for (ValueId value : live_in_) copies_[value.index] = to.load(8, memory_, places_.at(value));
  for (ValueId value : addresses_) copy_of(to, value);
  Target header{block_copies_.at(loop_.header), {}};
  for (ValueId parameter : from_.blocks[loop_.header].parameters)
    header.arguments.push_back(to.load(8, memory_, places_.at(parameter)));
  to.add({.op = Op::k_jump, .targets = {header}});
}

void Extraction::copy_instruction(Builder& to, ValueId id) {
  Instruction copy = from_.values[id];
  to.at(copy.span);
  if (copy.op == Op::k_slot) {
    copies_[id.index] = slot_address(to, copy.slot);
    return;
  }
  for (ValueId& operand : copy.operands) operand = copy_of(to, operand);
  for (size_t i = 0; i < copy.targets.size(); ++i) {
    Target& target = copy.targets[i];
    if (!is_inside(target.block)) {
      target = {exit_block(block_of_[id.index], i), {}};
      continue;
    }
    target.block = block_copies_.at(target.block);
    for (ValueId& argument : target.arguments) argument = copy_of(to, argument);
  }
  copies_[id.index] = to.add(std::move(copy));
}

BlockId Extraction::exit_block(BlockId from, size_t target) const {
  for (size_t i = 0; i < exits_.size(); ++i)
    if (exits_[i].from == from && exits_[i].target == target) return exit_blocks_[i];
  UNREACHABLE("an edge that leaves the loop is an exit");
}

ValueId Extraction::copy_of(Builder& to, ValueId value) {
  if (copies_[value.index].valid()) return copies_[value.index];
  CHECK(is_rematerializable(value));
  Instruction rematerialized = from_.values[value];
  if (rematerialized.op == Op::k_slot) return slot_address(to, rematerialized.slot);
  for (ValueId& operand : rematerialized.operands) operand = copy_of(to, operand);
  const ValueId copy = to.add(std::move(rematerialized));
  if (!is_simple(value)) copies_[value.index] = copy;
  return copy;
}

ValueId Extraction::slot_address(Builder& to, SlotId slot) {
  if (const auto shared = shared_slots_.find(slot); shared != shared_slots_.end())
    return to.binary(Op::k_add, memory_, shared->second);
  const auto [own, is_new] = own_slots_.try_emplace(slot);
  if (is_new) own->second = out_.slots.add(Slot(from_.slots[slot]));
  return to.slot(own->second);
}

void Extraction::write_exits(Builder& to) {
  const Dominators dominators(from_);
  for (size_t i = 0; i < exits_.size(); ++i) {
    to.enter(exit_blocks_[i]);
    for (ValueId value : live_out_)
      if (dominators.dominates(block_of_[value.index], exits_[i].from))
        to.store(8, memory_, copies_[value.index], places_.at(value));
    to.ret(static_cast<int64_t>(i));
  }
}

// ---- The caller

// Replaces the loop's header by a block that calls the function.
void Extraction::call_it() {
  Builder to(from_);
  to.at(terminator(from_, loop_.header).span);
  const BlockId call = to.add_block("loop");
  to.enter(call);
  memory_slot_ = to.add_slot(memory_bytes_, 8, "loop");
  const ValueId memory = to.slot(memory_slot_);
  for (ValueId parameter : std::vector(from_.blocks[loop_.header].parameters))
    to.store(8, memory, to.add_block_parameter(call), places_.at(parameter));
  for (ValueId value : live_in_) to.store(8, memory, value, places_.at(value));
  const ValueId exit = to.call_function(id_, {memory});
  std::vector<ValueId> replacement;
  const auto replace = [&](ValueId value, ValueId by) {
    replacement.resize(from_.values.size());
    replacement[value.index] = by;
  };
  for (ValueId value : live_out_) replace(value, to.load(8, memory, places_.at(value)));
  for (ValueId value : rematerialized_outs_) replace(value, to.add(Instruction(from_.values[value])));
  leave(to, exit, replacement);
  for (BlockId block : from_.blocks.ids()) {
    if (is_inside(block)) continue;
    for (Target& target : terminator(from_, block).targets)
      if (target.block == loop_.header) target.block = call;
  }
  replacement.resize(from_.values.size());
  replace_all_uses(from_, replacement);
}

// Branches on the function's result to the target of the exit.
void Extraction::leave(Builder& to, ValueId exit, const std::vector<ValueId>& replacement) {
  for (size_t i = 0; i < exits_.size(); ++i) {
    Target target = terminator(from_, exits_[i].from).targets[exits_[i].target];
    for (ValueId& argument : target.arguments)
      if (argument.index < replacement.size() && replacement[argument.index].valid())
        argument = replacement[argument.index];
    if (i + 1 == exits_.size()) {
      to.add({.op = Op::k_jump, .targets = {target}});
    } else {
      const BlockId next = to.add_block("left");
      const ValueId number = to.constant(static_cast<int64_t>(i));
      to.add({.op = Op::k_branch, .operands = {exit, number}, .targets = {target, {next, {}}}});
      to.enter(next);
    }
  }
}

void Extraction::move_shared_slots() {
  for (BlockId block : reverse_post_order(from_)) {
    std::vector<ValueId> moved;
    for (ValueId id : std::vector(from_.blocks[block].instructions)) {
      const auto shared = shared_slots_.find(from_.values[id].slot);
      if (from_.values[id].op == Op::k_slot && shared != shared_slots_.end()) {
        const ValueId memory = from_.values.add({.op = Op::k_slot, .slot = memory_slot_});
        const ValueId offset = from_.values.add({.imm = shared->second});
        from_.values[id] = {.op = Op::k_add, .operands = {memory, offset}};
        moved.insert(moved.end(), {memory, offset});
      }
      moved.push_back(id);
    }
    from_.blocks[block].instructions = std::move(moved);
  }
}

// ---- Choice of loops

// Estimates the verifier's work by the branches in loops, counted once for each loop that contains them.
bool is_too_complex(const Function& function, uint32_t max_branches) {
  const std::vector<Loop> loops = find_loops(function);
  uint32_t branches = 0;
  for (const Loop& loop : loops)
    for (BlockId block : loop.blocks) branches += terminator(function, block).op == Op::k_branch;
  return loops.size() > 1 && branches > max_branches;
}

// Moves all loops of one function that can be moved.
void outline_in(Module& module, Unit& unit, FunctionId id, uint32_t max_depth) {
  std::set<BlockId> staying;
  for (;;) {
    const std::vector<Loop> loops = find_loops(module.functions[id]);
    const auto next =
        std::find_if(loops.begin(), loops.end(), [&](const Loop& loop) { return !staying.contains(loop.header); });
    if (next == loops.end()) break;
    const FunctionId added = module.functions.next_id();
    Extraction extraction(module.functions[id], *next, added);
    if (std::optional<Function> made = extraction.extract(module, max_depth)) {
      module.functions.add(std::move(*made));
      unit.functions.push_back(added);
    } else {
      staying.insert(next->header);
    }
  }
  drop_unreachable(module.functions[id]);
}

}  // namespace

std::optional<Module> outline_loops(const Module& module, const ModuleLimits& limits) {
  std::optional<Module> outlined;
  for (size_t i = 0; i < module.units.size(); ++i) {
    for (const FunctionId id : module.units[i].functions) {
      if (!is_too_complex(module.functions[id], limits.max_loop_branches)) continue;
      if (!outlined) outlined = module;
      outline_in(*outlined, outlined->units[i], id, limits.max_call_depth);
    }
  }
  return outlined;
}

}  // namespace espy::opt
