#include "bpf/code_builder.h"

#include <algorithm>

#include "bpf/block_layout.h"
#include "ir/analysis.h"

namespace espy::bpf {

using namespace ir;

CodeBuilder::CodeBuilder(const Function& function, const Target& target)
    : function_(function), target_(target), folding_(function), registers_(function.values.size(), kNoReg) {
  out_.blocks.resize(function.blocks.size());
  for (const Slot& slot : function.slots) out_.objects.push_back({slot.size_bytes, slot.align_bytes});
  out_.slot_count = static_cast<uint32_t>(out_.objects.size());
}

uint32_t CodeBuilder::add_block() {
  out_.blocks.emplace_back();
  return static_cast<uint32_t>(out_.blocks.size() - 1);
}

void CodeBuilder::enter(uint32_t block) {
  block_ = block;
  order_.push_back(block);
  shared_.clear();
}

MachineInsn& CodeBuilder::push(MachineInsn insn) {
  insn.span = span_;
  return out_.blocks[block_].insns.emplace_back(insn);
}

Reg CodeBuilder::result(ValueId id) {
  Reg& reg = registers_[id.index];
  if (reg == kNoReg) reg = out_.add_register();
  return reg;
}

std::optional<int64_t> CodeBuilder::constant(ValueId id) const {
  const Instruction& instruction = function_.values[id];
  if (instruction.op != Op::k_konst) return std::nullopt;
  return instruction.imm;
}

std::optional<int32_t> CodeBuilder::small_constant(ValueId id) const {
  std::optional<int64_t> value = constant(id);
  if (!value || *value != static_cast<int32_t>(*value)) return std::nullopt;
  return static_cast<int32_t>(*value);
}

Reg CodeBuilder::use(ValueId id) {
  FoldedAddress folded = fold_address(function_, id, 0);
  const Instruction& base = function_.values[folded.base];
  if (!is_simple(base)) return result(id);
  bool is_large = base.op == Op::k_konst && base.imm != static_cast<int32_t>(base.imm) && folded.base == id;
  if (is_large || base.op == Op::k_map_value) return shared(base, base.imm + folded.offset);
  Reg reg = out_.add_register();
  put(reg, id);
  return reg;
}

Reg CodeBuilder::shared(const Instruction& base, int64_t imm) {
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

void CodeBuilder::put(Reg dst, ValueId id) {
  FoldedAddress folded = fold_address(function_, id, 0);
  const Instruction& base = function_.values[folded.base];
  is_simple(base) ? put_base(dst, base, folded.offset) : move(dst, result(id));
}

void CodeBuilder::put_base(Reg dst, const Instruction& base, int64_t offset) {
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

void CodeBuilder::put_constant(Reg dst, int64_t value) {
  if (value == static_cast<int32_t>(value)) {
    push({.code = kAlu64 | kMov | kImm, .dst = dst, .imm = value});
  } else if (value == static_cast<uint32_t>(value)) {
    push({.code = kAlu32 | kMov | kImm, .dst = dst, .imm = static_cast<int32_t>(value)});
  } else {
    push({.code = kLdImm64, .dst = dst, .imm = value});
  }
}

void CodeBuilder::move(Reg dst, Reg src) {
  if (dst != src) push({.code = kAlu64 | kMov | kReg, .dst = dst, .src = src});
}

void CodeBuilder::alu(uint8_t operation, Reg dst, Reg src, int16_t offset) {
  push({.code = static_cast<uint8_t>(kAlu64 | operation | kReg), .dst = dst, .src = src, .offset = offset});
}

void CodeBuilder::alu_imm(uint8_t operation, Reg dst, int32_t imm, int16_t offset) {
  push({.code = static_cast<uint8_t>(kAlu64 | operation | kImm), .dst = dst, .offset = offset, .imm = imm});
}

// A parallel move: a register is set when no pending move reads it. The remaining cycles are each broken by a
// temporary.
void CodeBuilder::move_all(std::vector<std::pair<Reg, ValueId>> moves) {
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

MachineFunction CodeBuilder::finish() {
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
  return std::move(out_);
}

}  // namespace espy::bpf
