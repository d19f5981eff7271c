#include "bpf/select.h"

#include <algorithm>

#include "bpf/block_layout.h"
#include "bpf/select_impl.h"
#include "ir/analysis.h"
#include "ir/conditions.h"

namespace espy::bpf {

using namespace ir;

MachineFunction select(const Function& function, const Target& target) { return Selector(function, target).run(); }

Selector::Selector(const Function& function, const Target& target)
    : function_(function), target_(target), folding_(function), registers_(function.values.size(), kNoReg) {
  out_.blocks.resize(function.blocks.size());
  for (const Slot& slot : function.slots) out_.objects.push_back({slot.size_bytes, slot.align_bytes});
  out_.slot_count = static_cast<uint32_t>(out_.objects.size());
}

MachineFunction Selector::run() {
  enter(add_block());  // a block of its own, since loops may jump to the entry
  read_inputs();
  out_.blocks[block_].next = 0;
  for (BlockId block : block_order(function_)) select_block(block);
  finish_layout();
  return std::move(out_);
}

// A block of IR starts in the machine block of the same number; further blocks have higher numbers.
void Selector::select_block(BlockId block) {
  enter(block.index);
  for (ValueId id : function_.blocks[block].instructions) {
    const Instruction& instruction = function_.values[id];
    Effect effect = effect_of(instruction);
    span_ = instruction.span;
    if (folding_.is_needed(id) || effect == Effect::write || effect == Effect::end) select(id);
  }
}

// Parameters and the context are in r1-r5 at entry and are copied first, wherever the function reads them.
void Selector::read_inputs() {
  for (const Block& block : function_.blocks) {
    for (ValueId id : block.instructions) {
      const Instruction& instruction = function_.values[id];
      if (!folding_.is_needed(id)) continue;
      if (instruction.op == Op::k_context) move(result(id), 1);
      if (instruction.op == Op::k_param) move(result(id), static_cast<Reg>(instruction.imm) + 1);
    }
  }
}

void Selector::select(ValueId id) {
  const Instruction& instruction = function_.values[id];
  switch (instruction.op) {
    case Op::k_context:
    case Op::k_param: return;
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function: return select_call(id, instruction);
    case Op::k_jump:
    case Op::k_branch:
    case Op::k_may_goto:
    case Op::k_ret: return select_end(instruction);
    default: break;
  }
  bool is_memory = instruction.op >= Op::k_load && instruction.op <= Op::k_copy;
  is_memory ? select_memory(id, instruction) : select_scalar(id, instruction);
}

void Selector::select_end(const Instruction& end) {
  switch (end.op) {
    case Op::k_jump:
      assign_parameters(end.targets[0]);
      out_.blocks[block_].next = end.targets[0].block.index;
      return;
    case Op::k_branch: return select_branch(end);
    case Op::k_may_goto: {
      uint32_t from = block_;
      push({.code = kJmp | kJcond, .target = 0});
      uint32_t next = edge(end.targets[0]);
      uint32_t spent = edge(end.targets[1]);
      out_.blocks[from].next = next;
      out_.blocks[from].insns.back().target = spent;
      return;
    }
    default: put(0, end.operands[0]); push({.code = kJmp | kExit});
  }
}

void Selector::select_branch(const Instruction& branch) {
  Condition condition = branch.condition;
  ValueId a = branch.operands[0], b = branch.operands[1];
  if (const Instruction* compare = folding_.compare_of(branch)) {
    bool if_zero = condition == Condition::eq;
    condition = as_condition(compare->op);
    if (if_zero) condition = *negation(condition);
    a = compare->operands[0];
    b = compare->operands[1];
  }
  uint32_t from = block_;
  jump_if(condition, a, b, 0);
  uint32_t if_true = edge(branch.targets[0]);
  uint32_t if_false = edge(branch.targets[1]);
  out_.blocks[from].insns.back().target = if_true;
  out_.blocks[from].next = if_false;
}

// Returns the block to jump to for `target`: the target, or a new block that sets its parameters. This splits edges
// with arguments; if all moves are coalesced, `encode` skips the empty block.
uint32_t Selector::edge(const ir::Target& target) {
  const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
  if (std::none_of(parameters.begin(), parameters.end(), [&](ValueId id) { return folding_.is_needed(id); }))
    return target.block.index;
  uint32_t block = add_block();
  enter(block);
  assign_parameters(target);
  out_.blocks[block].next = target.block.index;
  return block;
}

void Selector::assign_parameters(const ir::Target& target) {
  const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
  std::vector<std::pair<Reg, ValueId>> moves;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (folding_.is_needed(parameters[i]) && parameters[i] != target.arguments[i])
      moves.emplace_back(result(parameters[i]), target.arguments[i]);
  }
  move_all(std::move(moves));
}

// A parallel move: a register is set when no pending move reads it. The remaining cycles are each broken by a
// temporary.
void Selector::move_all(std::vector<std::pair<Reg, ValueId>> moves) {
  auto source = [&](ValueId id) { return registers_[id.index]; };
  std::map<Reg, uint32_t> reads;
  std::map<Reg, Reg> aside;
  for (auto& [dst, id] : moves)
    if (source(id) != kNoReg) ++reads[source(id)];
  auto emit_move = [&](Reg dst, ValueId id) {
    auto found = aside.find(source(id));
    found == aside.end() ? put(dst, id) : move(dst, found->second);
    if (source(id) != kNoReg && found == aside.end()) --reads[source(id)];
  };
  while (!moves.empty()) {
    size_t before = moves.size();
    std::erase_if(moves, [&](const std::pair<Reg, ValueId>& item) {
      if (reads[item.first] > 0) return false;
      emit_move(item.first, item.second);
      return true;
    });
    if (moves.size() != before) continue;
    Reg stuck = moves.front().first;
    Reg copy = out_.add_register();
    move(copy, stuck);
    aside[stuck] = copy;
    reads[stuck] = 0;
  }
}

uint32_t Selector::add_block() {
  out_.blocks.emplace_back();
  return static_cast<uint32_t>(out_.blocks.size() - 1);
}

void Selector::enter(uint32_t block) {
  block_ = block;
  order_.push_back(block);
  shared_.clear();
}

MachineInsn& Selector::push(MachineInsn insn) {
  insn.span = span_;
  return out_.blocks[block_].insns.emplace_back(insn);
}

void Selector::finish_layout() {
  std::vector<uint32_t> place(out_.blocks.size(), kNoBlock);
  for (uint32_t i = 0; i < order_.size(); ++i) place[order_[i]] = i;
  std::vector<MachineBlock> blocks(order_.size());
  std::vector<int32_t> deeper(order_.size() + 1);
  for (uint32_t i = 0; i < order_.size(); ++i) {
    blocks[i] = std::move(out_.blocks[order_[i]]);
    MachineBlock& block = blocks[i];
    if (block.next != kNoBlock) block.next = place[block.next];
    if (!block.insns.empty() && block.insns.back().target != kNoBlock)
      block.insns.back().target = place[block.insns.back().target];
    for_each_successor(block, [&](uint32_t to) {
      if (to > i) return;
      ++deeper[to];
      --deeper[i + 1];
    });
  }
  int32_t depth = 0;
  for (uint32_t i = 0; i < blocks.size(); ++i) blocks[i].loop_depth = static_cast<uint32_t>(depth += deeper[i]);
  out_.blocks = std::move(blocks);
}

Reg Selector::result(ValueId id) {
  Reg& reg = registers_[id.index];
  if (reg == kNoReg) reg = out_.add_register();
  return reg;
}

std::optional<int64_t> Selector::constant(ValueId id) const {
  const Instruction& instruction = function_.values[id];
  if (instruction.op != Op::k_konst) return std::nullopt;
  return instruction.imm;
}

std::optional<int32_t> Selector::small_constant(ValueId id) const {
  std::optional<int64_t> value = constant(id);
  if (!value || *value != static_cast<int32_t>(*value)) return std::nullopt;
  return static_cast<int32_t>(*value);
}

Reg Selector::use(ValueId id) {
  FoldedAddress folded = fold_address(function_, id, 0);
  const Instruction& base = function_.values[folded.base];
  if (!is_simple(base)) return result(id);
  bool is_large = base.op == Op::k_konst && base.imm != static_cast<int32_t>(base.imm) && folded.base == id;
  if (is_large || base.op == Op::k_map_value) return shared(base, base.imm + folded.offset);
  Reg reg = out_.add_register();
  put(reg, id);
  return reg;
}

Reg Selector::shared(const Instruction& base, int64_t imm) {
  Reg& reg = shared_[{base.op, base.map.index, imm}];
  if (reg != 0) return reg;
  reg = out_.add_register();
  Instruction moved = base;
  moved.imm = imm;
  put_base(reg, moved, 0);
  out_[reg].is_rematerialised = true;
  out_[reg].recipe = out_.blocks[block_].insns.back();
  return reg;
}

void Selector::put(Reg dst, ValueId id) {
  FoldedAddress folded = fold_address(function_, id, 0);
  const Instruction& base = function_.values[folded.base];
  is_simple(base) ? put_base(dst, base, folded.offset) : move(dst, result(id));
}

void Selector::put_base(Reg dst, const Instruction& base, int64_t offset) {
  switch (base.op) {
    case Op::k_konst: return put_constant(dst, base.imm + offset);
    case Op::k_slot:
      move(dst, kFramePointer);
      push({.code = kAlu64 | kAdd | kImm, .dst = dst, .imm = offset, .object = base.slot.index});
      return;
    case Op::k_map: push({.code = kLdImm64, .pseudo = kPseudoMapFd, .dst = dst, .map = base.map}); return;
    case Op::k_map_value:
      push({.code = kLdImm64, .pseudo = kPseudoMapValue, .dst = dst, .imm = base.imm + offset, .map = base.map});
      return;
    default: push({.code = kLdImm64, .pseudo = kPseudoFunction, .dst = dst, .function = base.function}); return;
  }
}

void Selector::put_constant(Reg dst, int64_t value) {
  if (value == static_cast<int32_t>(value)) {
    push({.code = kAlu64 | kMov | kImm, .dst = dst, .imm = value});
  } else if (value == static_cast<uint32_t>(value)) {
    push({.code = kAlu32 | kMov | kImm, .dst = dst, .imm = static_cast<int32_t>(value)});
  } else {
    push({.code = kLdImm64, .dst = dst, .imm = value});
  }
}

void Selector::move(Reg dst, Reg src) {
  if (dst != src) push({.code = kAlu64 | kMov | kReg, .dst = dst, .src = src});
}

}  // namespace espy::bpf
