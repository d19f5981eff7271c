// outline_loops: moves loops into functions of their own, which the kernel's verifier checks once each.
//
// The verifier explores every path of a program, and iterates a loop until it sees no new state; each preceding loop
// and branch multiplies the states that arrive, and a million instructions are soon exceeded. A global function is
// verified on its own, for any content of the memory that its parameter points to; at a call, the verifier only assumes
// that this memory has changed (Linux 5.12). So the innermost loops of a program that is likely to exceed the limit are
// moved to global functions, then the loops around them:
//
//     b1: jump b2(v1)                          b1: jump c(v1)
//     b2(i): ... branch ..., b3, b4     =>     c(i): store [memory], i; r = call loop(memory); load ...; jump b4
//     b3: ... jump b2(i2)
//     b4: ...
//
// Numbers that are live into the loop or out of it are passed in this memory, an object on the caller's stack, and so
// are stack objects that both sides use. The result of the function is the number of the edge by which the loop was
// left. Pointers cannot be passed in memory: a loop that uses a pointer from outside is not outlined, unless the
// pointer can be rematerialized (`slot`, `map`).
//
// The parts: Pointers finds the values that cannot be passed in memory, CrossingValues what crosses the border of a
// loop and where it is in memory, LoopFunction builds the function, LoopCall replaces the loop by the call.
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

// Returns the natural loops of a function, smallest first, so that a loop precedes those around it.
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

// The values that may be pointers for the verifier: by their origin; if loaded from the context or through a pointer,
// by whether memory is accessed through them.
class Pointers {
 public:
  explicit Pointers(const Function& function)
      : function_(function), is_pointer_(function.values.size()), is_offset_(function.values.size()) {
    find_read_through();
    repeat(&Pointers::visit);
    repeat(&Pointers::visit_offset);
  }
  // Returns true if spilling through memory would lose what the verifier must know: that the value is a pointer, or the
  // bounds of a number that is added to a pointer, if a block other than these has checked them.
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
  // Marks the operands of pointer arithmetic, transitively, up to values that are checked or masked.
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
      case Op::k_load: return is_read_through_[id.index] && !is_bpf_memory(each.operands[0]);
      case Op::k_kfunc: return is_read_through_[id.index];
      case Op::k_call: return each.is_nullable || is_read_through_[id.index];
      default: return false;
    }
  }
  bool is_bpf_memory(ValueId address) const {
    const Instruction* at = &function_.values[address];
    while (at->op == Op::k_add) at = &function_.values[at->operands[0]];
    return at->op == Op::k_slot || at->op == Op::k_map_value;
  }

  const Function& function_;
  std::vector<bool> is_pointer_, is_offset_, is_read_through_;
  std::map<ValueId, std::set<BlockId>> checks_;  // by value: the blocks that compare it by order
};

// Returns the depth of calls from these blocks.
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

bool is_simple(const Function& function, ValueId value) {
  const Op op = function.values[value].op;
  return op == Op::k_konst || op == Op::k_slot || op == Op::k_map || op == Op::k_map_value || op == Op::k_func;
}

// Returns true if the value can be computed anywhere: constants, addresses of slots and maps, and the address of the
// current CPU's part of a map value.
bool is_rematerializable(const Function& function, ValueId value) {
  const Instruction& each = function.values[value];
  const bool is_address = each.op == Op::k_add || each.op == Op::k_sub || each.op == Op::k_and || each.op == Op::k_shl;
  if (is_address)
    return is_rematerializable(function, each.operands[0]) && is_rematerializable(function, each.operands[1]);
  const bool is_cpu = each.op == Op::k_call && each.helper == Helper::get_smp_processor_id;
  return is_cpu || is_simple(function, value);
}

// What crosses the border of a loop, and its layout in the memory that caller and function share.
class CrossingValues {
 public:
  CrossingValues(const Function& function, const Loop& loop)
      : function_(function), loop_(loop), pointers_(function), block_of_(defining_blocks(function)) {}

  // Analyzes the loop. Returns false if it cannot be outlined; the results are then incomplete.
  bool find();

  bool is_inside(BlockId block) const { return loop_.blocks.contains(block); }
  bool is_inside(ValueId value) const { return block_of(value).valid() && is_inside(block_of(value)); }
  BlockId block_of(ValueId value) const { return block_of_[value.index]; }

  const std::vector<Exit>& exits() const { return exits_; }
  const std::set<ValueId>& live_in() const { return live_in_; }
  const std::set<ValueId>& live_out() const { return live_out_; }
  const std::set<ValueId>& rematerialized_in() const { return rematerialized_in_; }
  const std::set<ValueId>& rematerialized_out() const { return rematerialized_out_; }

  // Offsets in the memory, of parameters of the header, live-in and live-out values, and of shared slots.
  uint32_t offset_of(ValueId value) const { return value_offsets_.at(value); }
  std::optional<uint32_t> offset_of(SlotId slot) const {
    const auto shared = shared_slots_.find(slot);
    return shared == shared_slots_.end() ? std::nullopt : std::optional(shared->second);
  }
  uint32_t memory_bytes() const { return memory_bytes_; }

 private:
  bool find_exits();
  bool find_live_in();
  bool use(ValueId value);
  bool find_shared_slots();
  bool find_live_out();
  bool lay_out_memory();
  bool must_not_be_stored(ValueId value) const { return pointers_.must_not_be_stored(value, loop_.blocks); }

  const Function& function_;
  const Loop& loop_;
  const Pointers pointers_;
  const std::vector<BlockId> block_of_;
  std::vector<Exit> exits_;
  std::set<ValueId> live_in_, live_out_;                      // passed in the memory
  std::set<ValueId> rematerialized_in_, rematerialized_out_;  // computed again on the other side
  std::map<SlotId, uint32_t> shared_slots_;
  std::map<ValueId, uint32_t> value_offsets_;
  uint32_t memory_bytes_ = 0;
};

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
  if (is_inside(value) || is_simple(function_, value)) return true;
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
    if (is_inside(value)) (is_simple(function_, value) ? rematerialized_out_ : live_out_).insert(value);
  };
  for (const Exit& exit : exits_)
    for (ValueId argument : terminator(function_, exit.from).targets[exit.target].arguments) leave(argument);
  for (BlockId block : reverse_post_order(function_)) {
    if (is_inside(block)) continue;
    for (ValueId id : function_.blocks[block].instructions)
      for_each_use(function_.values[id], [&](const ValueId& used) { leave(used); });
  }
  return std::ranges::none_of(live_out_, [&](ValueId value) { return must_not_be_stored(value); });
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

// Builds the function of a loop: a copy of the loop's blocks between an entry that loads the live-in values and exits
// that store the live-out values.
class LoopFunction {
 public:
  LoopFunction(const Function& from, const Loop& loop, const CrossingValues& crossing)
      : from_(from), loop_(loop), crossing_(crossing), to_(out_), copies_(from.values.size()) {}

  Function build(FunctionId id);

 private:
  void make_blocks();
  void write_entry();
  void copy_instruction(ValueId id);
  ValueId copy_of(ValueId value);
  ValueId slot_address(SlotId slot);
  BlockId exit_block(BlockId from, size_t target) const;
  void write_exits();

  const Function& from_;
  const Loop& loop_;
  const CrossingValues& crossing_;
  Function out_;
  Builder to_;
  std::vector<ValueId> copies_;  // by value of `from_`
  std::map<BlockId, BlockId> block_copies_;
  std::vector<BlockId> exit_blocks_;  // by exit
  std::map<SlotId, SlotId> own_slots_;
  BlockId entry_;
  ValueId memory_;
};

Function LoopFunction::build(FunctionId id) {
  out_.name = fmt::format("{}_loop_{}", from_.name, id.index);
  out_.parameter_count = 1;
  out_.memory_bytes = crossing_.memory_bytes();
  make_blocks();
  write_entry();
  for (BlockId block : reverse_post_order(from_)) {
    if (!crossing_.is_inside(block)) continue;
    to_.enter(block_copies_.at(block));
    for (ValueId value : from_.blocks[block].instructions) copy_instruction(value);
  }
  write_exits();
  return std::move(out_);
}

void LoopFunction::make_blocks() {
  entry_ = to_.add_block("entry");
  for (BlockId block : loop_.blocks) {
    const BlockId copy = to_.add_block(from_.blocks[block].name);
    block_copies_[block] = copy;
    for (ValueId parameter : from_.blocks[block].parameters) copies_[parameter.index] = to_.add_block_parameter(copy);
  }
  for (size_t i = 0; i < crossing_.exits().size(); ++i) exit_blocks_.push_back(to_.add_block("exit"));
}

// Begins with a null check, since the verifier assumes that the pointer may be null.
void LoopFunction::write_entry() {
  const BlockId missing = to_.add_block("missing"), start = to_.add_block("start");
  to_.enter(entry_);
  memory_ = to_.param(0);
  to_.branch(Condition::eq, memory_, 0, missing, start);
  to_.enter(missing);
  to_.ret(0);
  to_.enter(start);
  for (ValueId value : crossing_.live_in()) copies_[value.index] = to_.load(8, memory_, crossing_.offset_of(value));
  for (ValueId value : crossing_.rematerialized_in()) copy_of(value);
  Target header{block_copies_.at(loop_.header), {}};
  for (ValueId parameter : from_.blocks[loop_.header].parameters)
    header.arguments.push_back(to_.load(8, memory_, crossing_.offset_of(parameter)));
  to_.add({.op = Op::k_jump, .targets = {header}});
}

void LoopFunction::copy_instruction(ValueId id) {
  Instruction copy = from_.values[id];
  to_.at(copy.span);
  if (copy.op == Op::k_slot) {
    copies_[id.index] = slot_address(copy.slot);
    return;
  }
  for (ValueId& operand : copy.operands) operand = copy_of(operand);
  for (size_t i = 0; i < copy.targets.size(); ++i) {
    Target& target = copy.targets[i];
    if (!crossing_.is_inside(target.block)) {
      target = {exit_block(crossing_.block_of(id), i), {}};
      continue;
    }
    target.block = block_copies_.at(target.block);
    for (ValueId& argument : target.arguments) argument = copy_of(argument);
  }
  copies_[id.index] = to_.add(std::move(copy));
}

BlockId LoopFunction::exit_block(BlockId from, size_t target) const {
  const std::vector<Exit>& exits = crossing_.exits();
  for (size_t i = 0; i < exits.size(); ++i)
    if (exits[i].from == from && exits[i].target == target) return exit_blocks_[i];
  UNREACHABLE("an edge that leaves the loop is an exit");
}

ValueId LoopFunction::copy_of(ValueId value) {
  if (copies_[value.index].valid()) return copies_[value.index];
  CHECK(is_rematerializable(from_, value));
  Instruction rematerialized = from_.values[value];
  if (rematerialized.op == Op::k_slot) return slot_address(rematerialized.slot);
  for (ValueId& operand : rematerialized.operands) operand = copy_of(operand);
  const ValueId copy = to_.add(std::move(rematerialized));
  if (!is_simple(from_, value)) copies_[value.index] = copy;
  return copy;
}

ValueId LoopFunction::slot_address(SlotId slot) {
  if (const auto offset = crossing_.offset_of(slot)) return to_.binary(Op::k_add, memory_, *offset);
  const auto [own, is_new] = own_slots_.try_emplace(slot);
  if (is_new) own->second = out_.slots.add(Slot(from_.slots[slot]));
  return to_.slot(own->second);
}

void LoopFunction::write_exits() {
  const Dominators dominators(from_);
  const std::vector<Exit>& exits = crossing_.exits();
  for (size_t i = 0; i < exits.size(); ++i) {
    to_.enter(exit_blocks_[i]);
    for (ValueId value : crossing_.live_out())
      if (dominators.dominates(crossing_.block_of(value), exits[i].from))
        to_.store(8, memory_, copies_[value.index], crossing_.offset_of(value));
    to_.ret(static_cast<int64_t>(i));
  }
}

// Replaces a loop by a call of its function.
class LoopCall {
 public:
  LoopCall(Function& in, const Loop& loop, const CrossingValues& crossing)
      : in_(in), loop_(loop), crossing_(crossing) {}

  // The loop's blocks become unreachable.
  void insert(FunctionId id);

 private:
  void branch_to_exits(Builder& to, ValueId exit, const std::vector<ValueId>& replacement);
  void redirect_entries(BlockId call);
  void move_shared_slots(SlotId memory_slot);

  Function& in_;
  const Loop& loop_;
  const CrossingValues& crossing_;
};

// A block that calls the function replaces the header of the loop.
void LoopCall::insert(FunctionId id) {
  Builder to(in_);
  to.at(terminator(in_, loop_.header).span);
  const BlockId call = to.add_block("loop");
  to.enter(call);
  const SlotId memory_slot = to.add_slot(crossing_.memory_bytes(), 8, "loop");
  const ValueId memory = to.slot(memory_slot);
  for (ValueId parameter : std::vector(in_.blocks[loop_.header].parameters))
    to.store(8, memory, to.add_block_parameter(call), crossing_.offset_of(parameter));
  for (ValueId value : crossing_.live_in()) to.store(8, memory, value, crossing_.offset_of(value));
  const ValueId exit = to.call_function(id, {memory});
  std::vector<ValueId> replacement;
  const auto replace = [&](ValueId value, ValueId by) {
    replacement.resize(in_.values.size());
    replacement[value.index] = by;
  };
  for (ValueId value : crossing_.live_out()) replace(value, to.load(8, memory, crossing_.offset_of(value)));
  for (ValueId value : crossing_.rematerialized_out()) replace(value, to.add(Instruction(in_.values[value])));
  branch_to_exits(to, exit, replacement);
  redirect_entries(call);
  replacement.resize(in_.values.size());
  replace_all_uses(in_, replacement);
  move_shared_slots(memory_slot);
}

// Continues at the target of the exit that the function returns.
void LoopCall::branch_to_exits(Builder& to, ValueId exit, const std::vector<ValueId>& replacement) {
  const std::vector<Exit>& exits = crossing_.exits();
  for (size_t i = 0; i < exits.size(); ++i) {
    Target target = terminator(in_, exits[i].from).targets[exits[i].target];
    for (ValueId& argument : target.arguments)
      if (argument.index < replacement.size() && replacement[argument.index].valid())
        argument = replacement[argument.index];
    if (i + 1 == exits.size()) {
      to.add({.op = Op::k_jump, .targets = {target}});
    } else {
      const BlockId next = to.add_block("left");
      const ValueId number = to.constant(static_cast<int64_t>(i));
      to.add({.op = Op::k_branch, .operands = {exit, number}, .targets = {target, {next, {}}}});
      to.enter(next);
    }
  }
}

void LoopCall::redirect_entries(BlockId call) {
  for (BlockId block : in_.blocks.ids()) {
    if (crossing_.is_inside(block)) continue;
    for (Target& target : terminator(in_, block).targets)
      if (target.block == loop_.header) target.block = call;
  }
}

// Replaces the addresses of shared slots by addresses in the memory.
void LoopCall::move_shared_slots(SlotId memory_slot) {
  for (BlockId block : reverse_post_order(in_)) {
    std::vector<ValueId> moved;
    for (ValueId id : std::vector(in_.blocks[block].instructions)) {
      const auto shared = crossing_.offset_of(in_.values[id].slot);
      if (in_.values[id].op == Op::k_slot && shared) {
        const ValueId memory = in_.values.add({.op = Op::k_slot, .slot = memory_slot});
        const ValueId offset = in_.values.add({.imm = *shared});
        in_.values[id] = {.op = Op::k_add, .operands = {memory, offset}};
        moved.insert(moved.end(), {memory, offset});
      }
      moved.push_back(id);
    }
    in_.blocks[block].instructions = std::move(moved);
  }
}

// Estimates the verifier's work for the loops of the function by their branches, counted once per enclosing loop.
bool is_too_complex(const Function& function, uint32_t max_branches) {
  const std::vector<Loop> loops = find_loops(function);
  uint32_t branches = 0;
  for (const Loop& loop : loops)
    for (BlockId block : loop.blocks) branches += terminator(function, block).op == Op::k_branch;
  return loops.size() > 1 && branches > max_branches;
}

// Outlines all loops of one function for which this is possible.
void outline_in(Module& module, Unit& unit, FunctionId id, uint32_t max_depth) {
  std::set<BlockId> rejected;
  for (;;) {
    const std::vector<Loop> loops = find_loops(module.functions[id]);
    const auto next = std::ranges::find_if(loops, [&](const Loop& loop) { return !rejected.contains(loop.header); });
    if (next == loops.end()) break;
    Function& function = module.functions[id];
    CrossingValues crossing(function, *next);
    if (!crossing.find() || call_depth(module, function, next->blocks) >= max_depth) {
      rejected.insert(next->header);
      continue;
    }
    const FunctionId added = module.functions.next_id();
    Function outlined = LoopFunction(function, *next, crossing).build(added);
    LoopCall(function, *next, crossing).insert(added);
    module.functions.add(std::move(outlined));
    unit.functions.push_back(added);
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
