#include "lower/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace espy::lower {
namespace {

using syntax::BinaryOp;

constexpr uint32_t kInlineCompareBytes = 64;

}  // namespace

ValueId Arithmetic::calculate(BinaryOp op, Operand left, Operand right, TypeId result) {
  const types::Type type = types()[result];
  const auto apply = [&](Op code) { return ir().binary(code, left.value, right.value); };
  const auto scaled = [&](Operand amount) {
    if (type.kind != Kind::kPointer || types()[amount.type].kind == Kind::kPointer) return amount.value;
    const uint32_t size = std::max(types()[module_.complete(type.element)].size_bytes, 1u);
    return size == 1 ? amount.value : ir().binary(Op::k_mul, amount.value, ir().constant(size));
  };
  const uint32_t bits =
      type.size_bytes >= 1 && type.size_bytes < 8 && types::is_integer(type) ? type.size_bytes * 8 : 64;
  const auto shift = [&](Op code) {
    const ValueId count = bits == 64 ? right.value : ir().binary(Op::k_and, right.value, bits - 1);
    return ir().binary(code, left.value, count);
  };
  ValueId out;
  switch (op) {
    case BinaryOp::kAdd: out = ir().binary(Op::k_add, scaled(left), scaled(right)); break;
    case BinaryOp::kSubtract: out = ir().binary(Op::k_sub, left.value, scaled(right)); break;
    case BinaryOp::kMultiply: out = apply(Op::k_mul); break;
    case BinaryOp::kDivide: out = divide(type.is_signed ? Op::k_sdiv : Op::k_udiv, left.value, right.value); break;
    case BinaryOp::kModulo: out = divide(type.is_signed ? Op::k_smod : Op::k_umod, left.value, right.value); break;
    case BinaryOp::kBitAnd: out = apply(Op::k_and); break;
    case BinaryOp::kBitOr: out = apply(Op::k_or); break;
    case BinaryOp::kBitXor: out = apply(Op::k_xor); break;
    case BinaryOp::kShiftLeft: out = shift(Op::k_shl); break;
    case BinaryOp::kShiftRight: out = shift(types()[left.type].is_signed ? Op::k_sar : Op::k_shr); break;
    default: UNREACHABLE("not arithmetic");
  }
  return type.kind == Kind::kPointer ? out : conversions_.normalize(out, result);
}

// A quotient or remainder; 1, counted, if the divisor is zero.
ValueId Arithmetic::divide(Op op, ValueId dividend, ValueId divisor) {
  const auto quotient = [&] { return ir().binary(op, dividend, divisor); };
  const ir::Instruction& known = functions_.function().values[divisor];
  if (known.op == Op::k_konst && known.imm != 0) return quotient();
  return select(Condition::ne, divisor, ir().constant(0), quotient, [&] {
    count_loss_here(program::LossKind::kValue, "divided by zero, which gave 1");
    return ir().constant(1);
  });
}

ValueId Arithmetic::compare(BinaryOp op, Operand left, Operand right, bool is_unsigned) {
  left = laundering_.opaque_copy(left);
  right = laundering_.opaque_copy(right);
  const auto apply = [&](Op code, bool is_swapped) {
    return is_swapped ? ir().binary(code, right.value, left.value) : ir().binary(code, left.value, right.value);
  };
  switch (op) {
    case BinaryOp::kEqual: return apply(Op::k_eq, false);
    case BinaryOp::kNotEqual: return apply(Op::k_ne, false);
    case BinaryOp::kLess: return apply(is_unsigned ? Op::k_ult : Op::k_slt, false);
    case BinaryOp::kLessEqual: return apply(is_unsigned ? Op::k_ule : Op::k_sle, false);
    case BinaryOp::kGreater: return apply(is_unsigned ? Op::k_ult : Op::k_slt, true);
    case BinaryOp::kGreaterEqual: return apply(is_unsigned ? Op::k_ule : Op::k_sle, true);
    default: UNREACHABLE("not a comparison");
  }
}

// Short objects are compared word by word without a branch, longer ones in a loop that ends at the first difference.
ValueId Arithmetic::equal_bytes(ValueId left, ValueId right, uint32_t size_bytes) {
  const uint32_t align = std::min(memory_.alignment_of(left), memory_.alignment_of(right));
  if (size_bytes > kInlineCompareBytes)
    return equal_bytes_by_loop(left, right, size_bytes, size_bytes % 8 == 0 ? align : 1);
  ValueId difference = ir().constant(0);
  for (uint32_t at = 0; at < size_bytes;) {
    const auto width = static_cast<uint8_t>(std::min(align, std::bit_floor(size_bytes - at)));
    const ValueId both = ir().binary(Op::k_xor, ir().load(width, left, at), ir().load(width, right, at));
    difference = ir().binary(Op::k_or, difference, both);
    at += width;
  }
  return ir().binary(Op::k_eq, difference, ir().constant(0));
}

ValueId Arithmetic::equal_bytes_by_loop(ValueId left, ValueId right, uint32_t size_bytes, uint32_t width) {
  const ir::SlotId result = new_slot("equal");
  write_slot(result, ir().constant(0));
  const BlockId differ = ir().add_block("differ");
  ir().count_up(size_bytes / width, [&](ValueId index, BlockId) {
    const ValueId at = width == 1 ? index : ir().binary(Op::k_mul, index, ir().constant(width));
    const ValueId a = ir().load(static_cast<uint8_t>(width), ir().binary(Op::k_add, left, at));
    const ValueId b = ir().load(static_cast<uint8_t>(width), ir().binary(Op::k_add, right, at));
    const BlockId same = ir().add_block("same");
    ir().branch(Condition::ne, a, b, differ, same);
    ir().enter(same);
  });
  write_slot(result, ir().constant(1));
  ir().jump(differ);
  ir().enter(differ);
  return read_slot(result);
}

// The shorter one of two strings gets a NUL, if it may lack it.
void Arithmetic::add_missing_nul(Operand& left, Operand& right) {
  for (const auto& [shorter, longer] : {std::pair{&left, &right}, std::pair{&right, &left}}) {
    const types::Type& type = types()[shorter->type];
    if (type.may_lack_nul && type.count < types()[longer->type].size_bytes)
      *shorter = conversions_.convert(*shorter, types().string(types::capacity_with_nul(type)));
  }
}

// The first bytes that differ decide. Without such within the smaller capacity, which has a NUL, the strings are equal.
ValueId Arithmetic::compare_order(BinaryOp op, Operand left, Operand right) {
  left = conversions_.in_our_memory(left);
  right = conversions_.in_our_memory(right);
  add_missing_nul(left, right);
  const uint32_t size = std::min(types()[left.type].size_bytes, types()[right.type].size_bytes);
  const ValueId difference = first_difference(ir(), left.value, right.value, size);
  return compare(op, {types().int64(), difference}, {types().int64(), ir().constant(0)}, false);
}

// Strings are zero-padded, so those that are equal within the smaller capacity are equal, if that has a NUL.
ValueId Arithmetic::equal_values(Operand left, Operand right) {
  left = conversions_.in_our_memory(left);
  right = conversions_.in_our_memory(right);
  add_missing_nul(left, right);
  const types::Type a = types()[left.type];
  const types::Type b = types()[right.type];
  if (types::is_struct_like(a) && types::is_struct_like(b) && left.type != right.type) {
    ValueId all = ir().constant(1);
    for (size_t i = 0; i < a.members.size() && i < b.members.size(); ++i) {
      const Operand x = memory_.load(offset(left.value, a.members[i].offset_bytes()), a.members[i].type);
      const types::Member& other = Conversions::counterpart(a, b, i);
      const Operand y = memory_.load(offset(right.value, other.offset_bytes()), other.type);
      const ValueId same = x.is_address ? equal_values(x, y) : ir().binary(Op::k_eq, x.value, y.value);
      all = ir().binary(Op::k_and, all, same);
    }
    return all;
  }
  return equal_bytes(left.value, right.value, std::min(a.size_bytes, b.size_bytes));
}

// The words of `text` are immediates; the last one may include zeros of the padding.
ValueId Arithmetic::equal_text(Operand operand, std::string text) {
  const uint32_t capacity = types()[operand.type].size_bytes;
  text.resize(std::min<size_t>(round_up(text.size() + 1, 8), capacity));
  if (text.size() > kInlineCompareBytes)
    return equal_bytes(operand.value, memory_.constant_bytes(text), static_cast<uint32_t>(text.size()));
  const uint32_t align = memory_.alignment_of(operand.value);
  ValueId difference = ir().constant(0);
  for (size_t at = 0; at < text.size();) {
    const auto width = static_cast<uint8_t>(std::min<size_t>(align, std::bit_floor(text.size() - at)));
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, width);
    const ValueId loaded = ir().load(width, operand.value, static_cast<int64_t>(at));
    const ValueId both = ir().binary(Op::k_xor, loaded, ir().constant(static_cast<int64_t>(word)));
    difference = ir().binary(Op::k_or, difference, both);
    at += width;
  }
  return ir().binary(Op::k_eq, difference, ir().constant(0));
}

}  // namespace espy::lower
