// Selection of arithmetic and compares. BPF instructions have two operands: d = a + b is `d = a; d += b`, and the
// allocator merges d and a if possible.
#include <utility>

#include "bpf/select_impl.h"
#include "ir/conditions.h"

namespace espy::bpf {

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

}  // namespace espy::bpf
