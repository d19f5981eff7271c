#include "bpf/select.h"

#include <algorithm>
#include <utility>

#include "bpf/encode.h"
#include "ir/analysis.h"
#include "ir/ir.h"

namespace espy::bpf {

using namespace ir;

MachineFunction select(const Function& function, const Target& target) { return Selector(function, target).run(); }

MachineFunction Selector::run() {
  code_.enter(code_.add_block());  // a block of its own, since loops may jump to the entry
  read_inputs();
  code_.set_next(code_.block(), 0);
  for (BlockId block : block_order(function_)) select_block(block);
  return code_.finish();
}

// A block of IR starts in the machine block of the same number; further blocks have higher numbers.
void Selector::select_block(BlockId block) {
  code_.enter(block.index);
  for (ValueId id : function_.blocks[block].instructions) {
    const Instruction& instruction = function_.values[id];
    Effect effect = effect_of(instruction);
    code_.set_span(instruction.span);
    if (folding_.is_needed(id) || effect == Effect::write || effect == Effect::end) select(id);
  }
}

// Parameters and the context are in r1-r5 at entry and are copied first, wherever the function reads them.
void Selector::read_inputs() {
  for (const Block& block : function_.blocks) {
    for (ValueId id : block.instructions) {
      const Instruction& instruction = function_.values[id];
      if (!folding_.is_needed(id)) continue;
      if (instruction.op == Op::k_context) code_.move(code_.result(id), 1);
      if (instruction.op == Op::k_param) code_.move(code_.result(id), static_cast<Reg>(instruction.imm) + 1);
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
    case Op::k_call_function: return memory_.call(id, instruction);
    case Op::k_jump:
    case Op::k_branch:
    case Op::k_may_goto:
    case Op::k_ret: return select_end(instruction);
    default: break;
  }
  bool is_memory = instruction.op >= Op::k_load && instruction.op <= Op::k_copy;
  is_memory ? memory_.select(id, instruction) : scalars_.select(id, instruction);
}

void Selector::select_end(const Instruction& end) {
  switch (end.op) {
    case Op::k_jump:
      assign_parameters(end.targets[0]);
      code_.set_next(code_.block(), end.targets[0].block.index);
      return;
    case Op::k_branch: return select_branch(end);
    case Op::k_may_goto: {
      uint32_t from = code_.block();
      code_.push({.code = kJmp | kJcond, .target = 0});
      uint32_t next = edge(end.targets[0]);
      uint32_t spent = edge(end.targets[1]);
      code_.set_next(from, next);
      code_.set_target(from, spent);
      return;
    }
    default: code_.put(0, end.operands[0]); code_.push({.code = kJmp | kExit});
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
  uint32_t from = code_.block();
  scalars_.jump_if(condition, a, b, 0);
  uint32_t if_true = edge(branch.targets[0]);
  uint32_t if_false = edge(branch.targets[1]);
  code_.set_target(from, if_true);
  code_.set_next(from, if_false);
}

// Returns the block to jump to for `target`: the target, or a new block that sets its parameters. This splits edges
// with arguments; if all moves are coalesced, `encode` skips the empty block.
uint32_t Selector::edge(const ir::Target& target) {
  const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
  if (std::none_of(parameters.begin(), parameters.end(), [&](ValueId id) { return folding_.is_needed(id); }))
    return target.block.index;
  uint32_t block = code_.add_block();
  code_.enter(block);
  assign_parameters(target);
  code_.set_next(block, target.block.index);
  return block;
}

void Selector::assign_parameters(const ir::Target& target) {
  const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
  std::vector<std::pair<Reg, ValueId>> moves;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (folding_.is_needed(parameters[i]) && parameters[i] != target.arguments[i])
      moves.emplace_back(code_.result(parameters[i]), target.arguments[i]);
  }
  code_.move_all(std::move(moves));
}

using namespace ir;

FoldedAddress fold_address(const Function& function, ValueId address, int64_t offset) {
  FoldedAddress out{address, offset};
  while (true) {
    const Instruction& add = function.values[out.base];
    if (add.op != Op::k_add) return out;
    const Instruction& constant = function.values[add.operands[1]];
    if (constant.op != Op::k_konst || !fits_offset(constant.imm) || !fits_offset(out.offset + constant.imm)) return out;
    out = {add.operands[0], out.offset + constant.imm};
  }
}

Folding::Folding(const Function& function)
    : function_(function), uses_(function.values.size()), incoming_(function.values.size()) {
  raw_uses_ = use_counts(function);
  for (const Block& block : function.blocks) {
    for (const ir::Target& target : function.values[block.instructions.back()].targets)
      for (size_t i = 0; i < target.arguments.size(); ++i)
        incoming_[function.blocks[target.block].parameters[i].index].push_back(target.arguments[i]);
  }
  for (BlockId block : reverse_post_order(function)) {
    for (ValueId id : function.blocks[block].instructions) {
      Effect effect = effect_of(function.values[id]);
      if (effect == Effect::write || effect == Effect::end) use_operands(function.values[id]);
    }
  }
  while (!todo_.empty()) {
    ValueId value = todo_.back();
    todo_.pop_back();
    use_operands(function.values[value]);
    for (ValueId argument : incoming_[value.index]) use(argument);
  }
}

const Instruction* Folding::compare_of(const Instruction& branch) const {
  if (branch.op != Op::k_branch || (branch.condition != Condition::eq && branch.condition != Condition::ne))
    return nullptr;
  const Instruction& zero = function_.values[branch.operands[1]];
  const Instruction& compare = function_.values[branch.operands[0]];
  bool is_compare = compare.op >= Op::k_eq && compare.op <= Op::k_sle;
  bool fits = is_compare && zero.op == Op::k_konst && zero.imm == 0 && raw_uses_[branch.operands[0].index] == 1;
  return fits ? &compare : nullptr;
}

void Folding::use(ValueId value) {
  FoldedAddress folded = fold_address(function_, value, 0);
  if (is_simple(function_.values[folded.base])) return;
  if (uses_[value.index]++ > 0) return;
  Effect effect = effect_of(function_.values[value]);
  if (effect == Effect::pure || effect == Effect::read) todo_.push_back(value);
}

void Folding::use_operands(const Instruction& instruction) {
  auto use_address = [&](ValueId address) { use(fold_address(function_, address, 0).base); };
  if (accesses_memory(instruction.op) || instruction.op == Op::k_zero) {
    for (size_t i = 0; i < instruction.operands.size(); ++i)
      i == 0 ? use_address(instruction.operands[i]) : use(instruction.operands[i]);
    return;
  }
  if (instruction.op == Op::k_copy) {
    for (ValueId operand : instruction.operands) use_address(operand);
    return;
  }
  const Instruction* compare = compare_of(instruction);
  for (ValueId operand : compare ? compare->operands : instruction.operands) use(operand);
}

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

// ---- Selection of arithmetic and compares. BPF instructions have two operands: d = a + b is `d = a; d += b`, and the
// allocator merges d and a if possible.

using namespace ir;

namespace {

bool is_commutative(uint8_t operation) {
  return operation == kAdd || operation == kMul || operation == kAnd || operation == kOr || operation == kXor;
}

bool is_shift(uint8_t operation) { return operation == kLsh || operation == kRsh || operation == kArsh; }

uint8_t operation_of(Op op) {
  switch (op) {
    case Op::k_add: return kAdd;
    case Op::k_sub: return kSub;
    case Op::k_mul: return kMul;
    case Op::k_and: return kAnd;
    case Op::k_or: return kOr;
    case Op::k_xor: return kXor;
    case Op::k_shl: return kLsh;
    case Op::k_shr: return kRsh;
    case Op::k_sar: return kArsh;
    default: UNREACHABLE("not a binary operation of BPF");
  }
}

uint8_t jump_of(Condition condition) {
  switch (condition) {
    case Condition::eq: return kJeq;
    case Condition::ne: return kJne;
    case Condition::ult: return kJlt;
    case Condition::ule: return kJle;
    case Condition::ugt: return kJgt;
    case Condition::uge: return kJge;
    case Condition::slt: return kJslt;
    case Condition::sle: return kJsle;
    case Condition::sgt: return kJsgt;
    case Condition::sge: return kJsge;
    case Condition::test: return kJset;
  }
  UNREACHABLE("no such condition");
}

}  // namespace

void ScalarSelector::select(ValueId id, const Instruction& instruction) {
  const std::vector<ValueId>& operands = instruction.operands;
  switch (instruction.op) {
    case Op::k_udiv:
    case Op::k_sdiv:
    case Op::k_umod:
    case Op::k_smod: return divide(id, instruction);
    case Op::k_eq:
    case Op::k_ne:
    case Op::k_ult:
    case Op::k_ule:
    case Op::k_slt:
    case Op::k_sle: return compare(code_.result(id), instruction);
    case Op::k_zext32:
      code_.push({.code = kAlu32 | kMov | kReg, .dst = code_.result(id), .src = code_.use(operands[0])});
      return;
    default: break;
  }
  if (operands.size() == 2) return binary(id, operation_of(instruction.op), operands[0], operands[1]);
  Reg dst = code_.result(id);
  code_.put(dst, operands[0]);
  switch (instruction.op) {
    case Op::k_neg: return code_.alu_imm(kNeg, dst, 0);
    case Op::k_not: return code_.alu_imm(kXor, dst, -1);
    case Op::k_opaque: return code_.alu_imm(kOr, dst, 0);  // the verifier relates copies, but not results of arithmetic
    case Op::k_zext8: return code_.alu_imm(kAnd, dst, 0xff);
    case Op::k_zext16: return code_.alu_imm(kAnd, dst, 0xffff);
    case Op::k_sext8: return sign_extend(dst, 8);
    case Op::k_sext16: return sign_extend(dst, 16);
    case Op::k_sext32: return sign_extend(dst, 32);
    case Op::k_bswap16: return byte_swap(dst, 16);
    case Op::k_bswap32: return byte_swap(dst, 32);
    case Op::k_bswap64: return byte_swap(dst, 64);
    default: UNREACHABLE("not a scalar operation");
  }
}

void ScalarSelector::binary(ValueId id, uint8_t operation, ValueId a, ValueId b, int16_t offset) {
  if (is_commutative(operation)) {
    bool b_is_free = !code_.constant(b) && code_.folding().uses(b) == 1 && code_.folding().uses(a) > 1;
    if (code_.constant(a) || b_is_free) std::swap(a, b);
  }
  Reg dst = code_.result(id);
  if (is_shift(operation) && code_.constant(b)) {
    code_.put(dst, a);
    return code_.alu_imm(operation, dst, static_cast<int32_t>(*code_.constant(b) & 63));
  }
  if (std::optional<int32_t> imm = code_.small_constant(b)) {
    code_.put(dst, a);
    return code_.alu_imm(operation, dst, *imm, offset);
  }
  Reg src = a == b ? dst : code_.use(b);
  code_.put(dst, a);
  code_.alu(operation, dst, src, offset);
}

void ScalarSelector::divide(ValueId id, const Instruction& instruction) {
  std::optional<int64_t> divisor = code_.constant(instruction.operands[1]);
  bool is_mod = instruction.op == Op::k_umod || instruction.op == Op::k_smod;
  bool is_signed = instruction.op == Op::k_sdiv || instruction.op == Op::k_smod;
  Reg dst = code_.result(id);
  if (divisor == 0 || (divisor == -1 && instruction.op == Op::k_smod)) return code_.put_constant(dst, 0);
  // INT64_MIN / -1 traps in the code of some kernels.
  if (divisor == -1 && instruction.op == Op::k_sdiv) {
    code_.put(dst, instruction.operands[0]);
    return code_.alu_imm(kNeg, dst, 0);
  }
  if (is_signed && (!code_.target().v4 || !divisor)) return divide_signed_by_hand(dst, instruction);
  binary(id, is_mod ? kMod : kDiv, instruction.operands[0], instruction.operands[1], is_signed ? 1 : 0);
  if (is_mod && !divisor) zero_if_zero(dst, code_.use(instruction.operands[1]));
}

// Returns 0 if the value is not negative, else -1.
Reg ScalarSelector::sign_of(Reg value) {
  Reg sign = code_.new_register();
  code_.move(sign, value);
  code_.alu_imm(kArsh, sign, 63);
  return sign;
}

Reg ScalarSelector::absolute(Reg value, Reg sign) {
  Reg out = code_.new_register();
  code_.move(out, value);
  code_.alu(kXor, out, sign);
  code_.alu(kSub, out, sign);
  return out;
}

// Signed division by means of unsigned division, for targets without it and for divisors that may be -1: kernels before
// 6.12 compute INT64_MIN / -1 in hardware, which traps.
void ScalarSelector::divide_signed_by_hand(Reg dst, const Instruction& instruction) {
  bool is_mod = instruction.op == Op::k_smod;
  Reg a = code_.use(instruction.operands[0]), b = code_.use(instruction.operands[1]);
  Reg sign_a = sign_of(a), sign_b = sign_of(b);
  Reg divisor = absolute(b, sign_b);
  code_.move(dst, absolute(a, sign_a));
  code_.alu(is_mod ? kMod : kDiv, dst, divisor);
  if (!is_mod) code_.alu(kXor, sign_a, sign_b);
  code_.alu(kXor, dst, sign_a);
  code_.alu(kSub, dst, sign_a);
  if (is_mod && !code_.constant(instruction.operands[1])) zero_if_zero(dst, divisor);
}

// x % 0 is x in BPF and 0 in the IR.
void ScalarSelector::zero_if_zero(Reg dst, Reg divisor) {
  uint32_t from = code_.block();
  uint32_t clear = code_.add_block(), done = code_.add_block();
  code_.push({.code = kJmp | kJne | kImm, .dst = divisor, .imm = 0, .target = done});
  code_.set_next(from, clear);
  code_.enter(clear);
  code_.put_constant(dst, 0);
  code_.set_next(clear, done);
  code_.enter(done);
}

void ScalarSelector::sign_extend(Reg dst, unsigned bits) {
  if (code_.target().v4) return code_.alu(kMov, dst, dst, static_cast<int16_t>(bits));
  code_.alu_imm(kLsh, dst, static_cast<int32_t>(64 - bits));
  code_.alu_imm(kArsh, dst, static_cast<int32_t>(64 - bits));
}

void ScalarSelector::byte_swap(Reg dst, unsigned bits) {
  // Without an unconditional swap: conversion to big endian, which swaps on a little-endian kernel.
  constexpr uint8_t kSwap = kAlu64 | kEnd, kToBigEndian = kAlu32 | kEnd | kReg;
  code_.push({.code = code_.target().v4 ? kSwap : kToBigEndian, .dst = dst, .imm = bits});
}

void ScalarSelector::jump_if(Condition condition, ValueId a, ValueId b, uint32_t target) {
  if (code_.constant(a) && !code_.constant(b)) {
    std::swap(a, b);
    condition = mirrored(condition);
  }
  uint8_t jump = kJmp | jump_of(condition);
  Reg left = code_.use(a);
  if (std::optional<int32_t> imm = code_.small_constant(b)) {
    code_.push({.code = jump, .dst = left, .imm = *imm, .target = target});
  } else {
    Reg right = code_.use(b);
    code_.push({.code = static_cast<uint8_t>(jump | kReg), .dst = left, .src = right, .target = target});
  }
}

// d = 1; if (a COND b) goto done; d = 0; done:
void ScalarSelector::compare(Reg dst, const Instruction& instruction) {
  if (branchless(dst, instruction)) return;
  uint32_t clear = code_.add_block(), done = code_.add_block();
  code_.put_constant(dst, 1);
  jump_if(as_condition(instruction.op), instruction.operands[0], instruction.operands[1], done);
  code_.set_next(code_.block(), clear);
  code_.enter(clear);
  code_.put_constant(dst, 0);
  code_.set_next(clear, done);
  code_.enter(done);
}

// Computes a compare by arithmetic, which saves the verifier a second path. Not for pointers, which it rejects.
bool ScalarSelector::branchless(Reg dst, const Instruction& instruction) {
  ValueId a = instruction.operands[0], b = instruction.operands[1];
  if (!is_scalar(a) || !is_scalar(b)) return false;
  if (instruction.op == Op::k_slt && code_.constant(b) == 0) {
    code_.put(dst, a);
    code_.alu_imm(kRsh, dst, 63);
    return true;
  }
  bool is_equal = instruction.op == Op::k_eq;
  if (!is_equal && instruction.op != Op::k_ne) return false;
  // x | -x has its highest bit set for every x except 0.
  Reg difference = code_.new_register();
  if (code_.constant(b) == 0) {
    code_.put(difference, a);
  } else if (std::optional<int32_t> imm = code_.small_constant(b)) {
    code_.put(difference, a);
    code_.alu_imm(kXor, difference, *imm);
  } else {
    Reg right = code_.use(b);
    code_.put(difference, a);
    code_.alu(kXor, difference, right);
  }
  code_.move(dst, difference);
  code_.alu_imm(kNeg, dst, 0);
  code_.alu(kOr, dst, difference);
  code_.alu_imm(kRsh, dst, 63);
  if (is_equal) code_.alu_imm(kXor, dst, 1);
  return true;
}

// Returns true if the value is certainly not a pointer.
bool ScalarSelector::is_scalar(ValueId id) const {
  const Instruction& instruction = code_.function().values[id];
  if (instruction.op == Op::k_load) return instruction.width < 8;
  if (instruction.op >= Op::k_mul && instruction.op <= Op::k_sle) return true;
  return instruction.op == Op::k_konst;
}

// ---- Selection of memory accesses and calls.

using namespace ir;

void MemorySelector::select(ValueId id, const Instruction& instruction) {
  const std::vector<ValueId>& operands = instruction.operands;
  switch (instruction.op) {
    case Op::k_load:
      return load(instruction.width, code_.result(id), operand(operands[0], instruction.imm), instruction.is_signed);
    case Op::k_store_release:
      if (!code_.target().has_ordered_stores) return atomic(id, instruction);
      [[fallthrough]];
    case Op::k_store: return store_value(instruction.width, operand(operands[0], instruction.imm), operands[1]);
    case Op::k_zero: return zero(operand(operands[0], 0), instruction.imm);
    case Op::k_copy: {
      Operand to = operand(operands[0], 0);
      return copy(to, operand(operands[1], 0), instruction.imm);
    }
    default: return atomic(id, instruction);
  }
}

MemorySelector::Operand MemorySelector::operand(ValueId address, int64_t offset) {
  FoldedAddress folded = fold_address(code_.function(), address, 0);
  const Instruction& base = code_.function().values[folded.base];
  int64_t total = folded.offset + offset;
  if (base.op == Op::k_slot) return {.object = base.slot.index, .offset = static_cast<int32_t>(total)};
  if (base.op == Op::k_map_value && base.imm + total >= 0) {
    // Addresses that are close share a register: the offset holds the low bits.
    int64_t low = (base.imm + total) & 0x3fff;
    return {.base = code_.shared(base, base.imm + total - low), .offset = static_cast<int32_t>(low)};
  }
  Reg reg = code_.use(folded.base);
  if (fits_offset(total)) return {.base = reg, .offset = static_cast<int32_t>(total)};
  Reg sum = code_.new_register();
  if (total == static_cast<int32_t>(total)) {
    code_.move(sum, reg);
    code_.alu_imm(kAdd, sum, static_cast<int32_t>(total));
  } else {
    code_.put_constant(sum, total);
    code_.alu(kAdd, sum, reg);
  }
  return {.base = sum};
}

void MemorySelector::load(unsigned width, Reg dst, const Operand& from, bool is_signed) {
  bool extends = is_signed && width < 8;
  uint8_t mode = extends && code_.target().v4 ? kModeMemSigned : kModeMem;
  code_.push({.code = static_cast<uint8_t>(kLdx | mode | size_code(width)),
              .dst = dst,
              .src = from.base,
              .offset = from.offset,
              .object = from.object});
  if (extends && !code_.target().v4) scalars_.sign_extend(dst, width * 8);
}

void MemorySelector::store(unsigned width, const Operand& to, Reg src) {
  code_.push({.code = static_cast<uint8_t>(kStx | kModeMem | size_code(width)),
              .dst = to.base,
              .src = src,
              .offset = to.offset,
              .object = to.object});
}

void MemorySelector::store_constant(unsigned width, const Operand& to, int32_t imm) {
  code_.push({.code = static_cast<uint8_t>(kSt | kModeMem | size_code(width)),
              .dst = to.base,
              .offset = to.offset,
              .imm = imm,
              .object = to.object});
}

void MemorySelector::store_value(unsigned width, const Operand& to, ValueId value) {
  std::optional<int64_t> imm = code_.constant(value);
  if (imm && (width < 8 || *imm == static_cast<int32_t>(*imm)))
    return store_constant(width, to, static_cast<int32_t>(*imm));
  store(width, to, code_.use(value));
}

void MemorySelector::zero(Operand to, int64_t size_bytes) {
  for (unsigned width : {8, 4, 2, 1}) {
    for (; size_bytes >= width; size_bytes -= width) {
      store_constant(width, to, 0);
      to.offset += static_cast<int32_t>(width);
    }
  }
}

void MemorySelector::copy(Operand to, Operand from, int64_t size_bytes) {
  for (unsigned width : {8, 4, 2, 1}) {
    for (; size_bytes >= width; size_bytes -= width) {
      Reg word = code_.new_register();
      load(width, word, from);
      store(width, to, word);
      to.offset += static_cast<int32_t>(width);
      from.offset += static_cast<int32_t>(width);
    }
  }
}

namespace {

int32_t atomic_operation(Op op, const Target& target) {
  switch (op) {
    case Op::k_atomic_add: return kAtomicAdd;
    case Op::k_atomic_fetch_add: return kAtomicAdd | kFetch;
    case Op::k_atomic_fetch_or: return kAtomicOr | kFetch;
    case Op::k_atomic_fetch_and: return kAtomicAnd | kFetch;
    case Op::k_atomic_xchg: return kXchg;
    case Op::k_atomic_cmpxchg: return kCmpxchg;
    case Op::k_store_release: return target.has_store_release ? kStoreRelease : kXchg;
    default: UNREACHABLE("not an atomic operation");
  }
}

}  // namespace

void MemorySelector::atomic(ValueId id, const Instruction& instruction) {
  int32_t operation = atomic_operation(instruction.op, code_.target());
  Operand to = operand(instruction.operands[0], instruction.imm);
  bool is_exchange = operation == kCmpxchg;
  Reg src = code_.use(instruction.operands[is_exchange ? 2 : 1]);
  if (is_exchange) {
    code_.put(0, instruction.operands[1]);
  } else if ((operation & kFetch) != 0) {
    Reg old = instruction.op == Op::k_store_release ? code_.new_register() : code_.result(id);
    code_.move(old, src);
    src = old;
  }
  code_.push({.code = static_cast<uint8_t>(kStx | kModeAtomic | size_code(instruction.width)),
              .dst = to.base,
              .src = src,
              .offset = to.offset,
              .imm = operation,
              .object = to.object});
  if (is_exchange && code_.folding().is_needed(id)) code_.move(code_.result(id), 0);
}

void MemorySelector::call(ValueId id, const Instruction& instruction) {
  for (uint32_t i = 0; i < instruction.operands.size(); ++i) code_.put(i + 1, instruction.operands[i]);
  MachineInsn call{.code = kJmp | kCall, .arguments = static_cast<uint8_t>(instruction.operands.size())};
  if (instruction.op == Op::k_call) {
    call.imm = static_cast<int64_t>(instruction.helper);
  } else if (instruction.op == Op::k_kfunc) {
    call.pseudo = kCallKfunc;
    call.imm = instruction.imm;
  } else {
    call.pseudo = kCallFunction;
    call.function = instruction.function;
  }
  code_.push(call);
  if (code_.folding().is_needed(id)) code_.move(code_.result(id), 0);
}

}  // namespace espy::bpf
