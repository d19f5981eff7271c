// outline_calls: a helper that a long program calls again and again gets a function that calls it.
//
// The kernel puts a few instructions in the place of a call of some helpers, lookups in maps above all. For each of
// them it moves all instructions that follow and corrects all jumps, so that the time to load a program is quadratic in
// its length: seconds for a thousand keys that the script names. The calls of one helper with one map become calls of a
// function, in which the kernel finds the helper once:
//
//     v3 = call map_lookup_elem v1, v2    =>    v3 = call_function lookup v2
//
// A call of a function costs a nanosecond or two, so that programs with fewer calls stay as they are.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/analysis.h"
#include "ir/builder.h"
#include "opt/loop_analysis.h"
#include "opt/pipeline.h"

namespace espy::opt {

namespace {

using namespace ir;

using Callee = std::pair<Helper, MapId>;  // of the same function

// Nullopt if the kernel calls the helper, or if its map is not known.
std::optional<Callee> callee_of(const Function& function, const Instruction& call) {
  if (call.op != Op::k_call) return std::nullopt;
  if (call.helper == Helper::get_smp_processor_id) return Callee{call.helper, {}};
  if (call.helper != Helper::map_lookup_elem) return std::nullopt;
  const Instruction& map = function.values[call.operands[0]];
  if (map.op != Op::k_map) return std::nullopt;
  return Callee{call.helper, map.map};
}

// The calls by what they call; none if the program ends by calling another one, which excludes functions before 5.10.
std::map<Callee, std::vector<ValueId>> calls_of(const Function& function) {
  std::map<Callee, std::vector<ValueId>> out;
  for (const Block& block : function.blocks) {
    for (const ValueId id : block.instructions) {
      const Instruction& each = function.values[id];
      if (each.op == Op::k_call && each.helper == Helper::tail_call) return {};
      if (const auto callee = callee_of(function, each)) out[*callee].push_back(id);
    }
  }
  return out;
}

Function function_for(const Callee& callee) {
  Function out;
  Builder to(out);
  to.enter(to.add_block("entry"));
  if (callee.first == Helper::map_lookup_elem) {
    out.name = "lookup";
    out.parameter_count = 1;
    to.ret(to.call(callee.first, {to.map(callee.second), to.param(0)}));
  } else {
    out.name = "cpu";
    to.ret(to.call(callee.first, {}));
  }
  return out;
}

void redirect(Function& function, const std::vector<ValueId>& calls, FunctionId to) {
  for (const ValueId id : calls) {
    const Instruction& call = function.values[id];
    const bool is_lookup = call.helper == Helper::map_lookup_elem;
    Instruction redirected{.op = Op::k_call_function, .is_nullable = is_lookup, .function = to, .span = call.span};
    if (is_lookup) redirected.operands = {call.operands[1]};
    function.values[id] = std::move(redirected);
  }
}

}  // namespace

bool outline_calls(Module& module, size_t max_calls) {
  bool changed = false;
  for (Unit& unit : module.units) {
    const FunctionId main = unit.functions[0];
    bool has_redirected = false;
    for (const auto& [callee, calls] : calls_of(module.functions[main])) {
      if (calls.size() <= max_calls) continue;
      Function added = function_for(callee);
      const FunctionId id = module.functions.add(std::move(added));
      unit.functions.push_back(id);
      redirect(module.functions[main], calls, id);
      has_redirected = true;
    }
    if (has_redirected) dce(module.functions[main]);
    changed |= has_redirected;
  }
  return changed;
}

// ---- outline_loops: moves loops into functions of their own, which the kernel's verifier checks once each.
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
// The parts: CrossingValues (loop_analysis.h) finds what crosses the border of a loop, LoopFunction builds the
// function, LoopCall replaces the loop by the call.

namespace {

using namespace ir;

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
  out_.is_global = true;
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
  if (!is_simple(from_.values[value])) copies_[value.index] = copy;
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
