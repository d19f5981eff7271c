// Operators. A value is 64 bits wide in a register, extended by the sign of its type; every result is brought back to
// its type's width.
#include <algorithm>
#include <bit>
#include <cstring>

#include "lower/unit.h"
#include "program/probe_names.h"

namespace espy::lower {
namespace {

using syntax::BinaryOp;

constexpr uint32_t kInlineCompareBytes = 64;

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual; }

}  // namespace

ValueId UnitLowering::normalise(ValueId value, TypeId type_id) {
  const types::Type& type = types()[type_id];
  if (type.kind == Kind::kBool) return ir().binary(Op::k_ne, value, ir().constant(0));
  if (!types::is_integer(type) && type.kind != Kind::kUsername) return value;
  return extend(value, static_cast<uint8_t>(type.size_bytes), type.is_signed);
}

// As C has it for 64 bits: unsigned if either side is an unsigned word. Narrower unsigned values are positive in 64
// bits, where signed and unsigned agree.
bool UnitLowering::is_unsigned_pair(ExprId left, ExprId right) {
  const auto is_unsigned_word = [&](ExprId expr) {
    const types::Type& type = types()[this->type(expr)];
    return type.kind == Kind::kPointer || (type.size_bytes == 8 && !type.is_signed && type.kind != Kind::kBool);
  };
  return is_unsigned_word(left) || is_unsigned_word(right);
}

ValueId UnitLowering::arithmetic(BinaryOp op, Operand left, Operand right, TypeId result, bool is_unsigned) {
  const types::Type type = types()[result];
  const auto apply = [&](Op code) { return ir().binary(code, left.value, right.value); };
  const auto scaled = [&](Operand amount) {
    if (type.kind != Kind::kPointer || types()[amount.type].kind == Kind::kPointer) return amount.value;
    const uint32_t size = std::max(types()[complete(type.element)].size_bytes, 1u);
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
    case BinaryOp::kDivide: out = apply(is_unsigned ? Op::k_udiv : Op::k_sdiv); break;
    case BinaryOp::kModulo: out = apply(is_unsigned ? Op::k_umod : Op::k_smod); break;
    case BinaryOp::kBitAnd: out = apply(Op::k_and); break;
    case BinaryOp::kBitOr: out = apply(Op::k_or); break;
    case BinaryOp::kBitXor: out = apply(Op::k_xor); break;
    case BinaryOp::kShiftLeft: out = shift(Op::k_shl); break;
    case BinaryOp::kShiftRight: out = shift(types()[left.type].is_signed ? Op::k_sar : Op::k_shr); break;
    default: UNREACHABLE("not arithmetic");
  }
  return type.kind == Kind::kPointer ? out : normalise(out, result);
}

ValueId UnitLowering::compare(BinaryOp op, Operand left, Operand right, bool is_unsigned) {
  left = opaque_copy(left);
  right = opaque_copy(right);
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

// 1 if all bytes are the same. Short ones are compared a word at a time without a branch, long ones in a loop that ends
// at the first difference.
ValueId UnitLowering::equal_bytes(ValueId left, ValueId right, uint32_t size_bytes) {
  const uint32_t align = std::min(alignment_of(left), alignment_of(right));
  if (size_bytes <= kInlineCompareBytes) {
    ValueId difference = ir().constant(0);
    for (uint32_t at = 0; at < size_bytes;) {
      const auto width = static_cast<uint8_t>(std::min(align, std::bit_floor(size_bytes - at)));
      const ValueId both = ir().binary(Op::k_xor, ir().load(width, left, at), ir().load(width, right, at));
      difference = ir().binary(Op::k_or, difference, both);
      at += width;
    }
    return ir().binary(Op::k_eq, difference, ir().constant(0));
  }
  const uint32_t width = size_bytes % 8 == 0 ? align : 1;
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

// Strings have zeros behind their end: equal in the shorter capacity is equal. A string known at compile time needs no
// more than its bytes and one NUL.
ValueId UnitLowering::equal_values(Operand left, Operand right) {
  left = in_our_memory(left);
  right = in_our_memory(right);
  const types::Type a = types()[left.type];
  const types::Type b = types()[right.type];
  if (types::is_struct_like(a) && types::is_struct_like(b) && left.type != right.type) {
    ValueId all = ir().constant(1);
    for (size_t i = 0; i < a.members.size() && i < b.members.size(); ++i) {
      const Operand x = load(offset(left.value, a.members[i].offset_bytes()), a.members[i].type);
      const Operand y = load(offset(right.value, b.members[i].offset_bytes()), b.members[i].type);
      const ValueId same = x.is_address ? equal_values(x, y) : ir().binary(Op::k_eq, x.value, y.value);
      all = ir().binary(Op::k_and, all, same);
    }
    return all;
  }
  return equal_bytes(left.value, right.value, std::min(a.size_bytes, b.size_bytes));
}

// Against a string known at compile time: its words are immediates, and its last one may reach into the zeros behind
// it.
ValueId UnitLowering::equal_text(Operand operand, std::string text) {
  const uint32_t capacity = types()[operand.type].size_bytes;
  text.resize(std::min<size_t>(round_up(text.size() + 1, 8), capacity));
  if (text.size() > kInlineCompareBytes)
    return equal_bytes(operand.value, constant_bytes(text), static_cast<uint32_t>(text.size()));
  const uint32_t align = alignment_of(operand.value);
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

Operand UnitLowering::binary(ExprId expr, const syntax::Binary& node) {
  const TypeId result = type(expr);
  if (node.op == BinaryOp::kLogicalAnd || node.op == BinaryOp::kLogicalOr) {
    const ir::SlotId slot = new_slot("logic");
    const BlockId yes = ir().add_block("true");
    const BlockId no = ir().add_block("false");
    const BlockId join = ir().add_block("join");
    branch_on(expr, yes, no);
    ir().enter(yes);
    write_slot(slot, ir().constant(1));
    ir().jump(join);
    ir().enter(no);
    write_slot(slot, ir().constant(0));
    ir().jump(join);
    ir().enter(join);
    return {result, merged_value(result, slot)};
  }
  for (const auto& [name, fired] : {std::pair{node.left, node.right}, std::pair{node.right, node.left}}) {
    const Kind kind = types()[type(fired)].kind;
    const auto known = program::is_probe_name(kind) ? text(name) : std::nullopt;
    if (!known) continue;
    const Operand index = value(fired);
    const ValueId same =
        ir().binary(Op::k_eq, index.value, ir().constant(program::first_named(kind, *known, module_.program.probes)));
    return {result, node.op == BinaryOp::kEqual ? same : ir().binary(Op::k_xor, same, ir().constant(1))};
  }
  if (is_comparison(node.op) && !is_scalar(type(node.left)) && !is_scalar(type(node.right)) &&
      !types::is_aggregation(types()[type(node.left)])) {
    Operand left = value(node.left);
    Operand right = value(node.right);
    for (const auto& [constant_side, other] : {std::pair{node.left, &right}, std::pair{node.right, &left}}) {
      const auto known = text(constant_side);
      if (!known || types()[other->type].kind != Kind::kString) continue;
      const auto needed = static_cast<uint32_t>(known->size() + 1);
      if (needed > types()[other->type].size_bytes) return {result, ir().constant(node.op == BinaryOp::kNotEqual)};
      const ValueId same = equal_text(in_our_memory(*other), *known);
      return {result, node.op == BinaryOp::kEqual ? same : ir().binary(Op::k_xor, same, ir().constant(1))};
    }
    const ValueId same = equal_values(left, right);
    return {result, node.op == BinaryOp::kEqual ? same : ir().binary(Op::k_xor, same, ir().constant(1))};
  }
  const Operand left{type(node.left), scalar(node.left)};
  Operand right{type(node.right), scalar(node.right)};
  if (node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo) right = opaque_copy(right);  // compared with zero
  const bool is_unsigned = is_unsigned_pair(node.left, node.right);
  if (is_comparison(node.op)) return {result, compare(node.op, left, right, is_unsigned)};
  const ValueId out = arithmetic(node.op, left, right, result, is_unsigned);
  if (node.op == BinaryOp::kSubtract && types()[left.type].kind == Kind::kPointer &&
      types()[right.type].kind == Kind::kPointer) {
    const uint32_t size = std::max(types()[complete(types()[left.type].element)].size_bytes, 1u);
    return {result, ir().binary(Op::k_sdiv, out, ir().constant(size))};
  }
  return {result, out};
}

Operand UnitLowering::unary(ExprId expr, const syntax::Unary& node) {
  using syntax::UnaryOp;
  const TypeId result = type(expr);
  switch (node.op) {
    case UnaryOp::kNot: return {result, ir().binary(Op::k_eq, truth(value(node.operand)), ir().constant(0))};
    case UnaryOp::kBitNot: return {result, normalise(ir().unary(Op::k_not, scalar(node.operand)), result)};
    case UnaryOp::kNegate: return {result, normalise(ir().unary(Op::k_neg, scalar(node.operand)), result)};
    case UnaryOp::kDereference: return dereference(value(node.operand), result);
    case UnaryOp::kAddressOf: return {result, address_of(node.operand).value};
    default: return step(expr, node, true);
  }
}

Operand UnitLowering::step(ExprId expr, const syntax::Unary& node, bool is_used) {
  using syntax::UnaryOp;
  const bool is_up = node.op == UnaryOp::kPreIncrement || node.op == UnaryOp::kPostIncrement;
  const bool gives_old = node.op == UnaryOp::kPostIncrement || node.op == UnaryOp::kPostDecrement;
  const Operand old = update(
      node.operand, is_up ? BinaryOp::kAdd : BinaryOp::kSubtract,
      [&]() -> Operand {
        return {types().int_type(1, true), ir().constant(1)};
      },
      type(node.operand), true, gives_old, is_used);
  return is_used ? Operand{type(expr).valid() ? type(expr) : old.type, old.value} : Operand{};
}

// target = target OP amount, in place. Gives the old or the new value.
Operand UnitLowering::update(ExprId target, BinaryOp op, const std::function<Operand()>& amount, TypeId type,
                             bool is_unsigned, bool gives_old, bool is_used) {
  const check::ExprFact fact = unit_->fact(target);
  const auto changed = [&](Operand old, Operand by) -> ValueId {
    return arithmetic(op, old, by, old.type.valid() ? old.type : type, is_unsigned);
  };
  const auto by_scalar = [&] {
    Operand by = amount();
    if (by.is_address) by = convert(by, types().int64());
    return by;
  };
  if (fact.variable.valid() && ast().get<syntax::Variable>(target)) {
    const Operand by = by_scalar();
    const Operand old = read_variable(fact.variable);
    const ValueId now = changed(old, by);
    write_variable(fact.variable, {old.type, now});
    return {old.type, gives_old ? old.value : now};
  }
  const Operand by = by_scalar();
  TypeId value_type = type;
  const ir::SlotId result = new_slot("updated");
  const auto in_place = [&](ValueId address) {
    const types::Type layout = types()[value_type];
    const bool can_add = !is_used && layout.size_bytes == 8 && (op == BinaryOp::kAdd || op == BinaryOp::kSubtract) &&
                         layout.kind == Kind::kInt;
    if (can_add) {  // no update is lost, whoever else adds
      ir().atomic_add(8, address, op == BinaryOp::kAdd ? by.value : ir().unary(Op::k_neg, by.value));
      return;
    }
    const Operand old = load(address, value_type);
    const ValueId now = changed(old, by);
    store(address, {value_type, now});
    if (is_used) write_slot(result, gives_old ? old.value : now);
  };
  if (fact.map.valid()) {
    value_type = script_map(fact.map).value;
    if (is_used) write_slot(result, ir().constant(0));
    with_new_value(element(target), in_place);
  } else {
    const Operand to = place(target);
    value_type = to.type;
    if (is_used) write_slot(result, ir().constant(0));
    if (to.is_address && to.space == AddressSpace::kBpf) in_place(to.value);
  }
  return is_used ? Operand{value_type, read_slot(result)} : Operand{};
}

// A buffer has its length before its bytes, a string or an array has not.
Operand UnitLowering::cast_bytes(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  const bool gives_buffer = target.kind == Kind::kBuffer;
  const uint32_t given = gives_buffer ? from.size_bytes : from.count;
  const uint32_t wanted = gives_buffer ? target.count : target.size_bytes;
  const uint32_t moved = std::min(given, wanted);
  const ValueId address = memory(target.size_bytes, "bytes");
  zero(address, target.size_bytes);
  read(offset(address, gives_buffer ? 4 : 0), moved, offset(operand.value, gives_buffer ? 0 : 4), AddressSpace::kBpf);
  if (gives_buffer) ir().store(4, address, ir().constant(moved));
  if (target.kind == Kind::kString) ir().store(1, address, ir().constant(0), target.size_bytes - 1);
  return {to, address, true};
}

Operand UnitLowering::cast(ExprId expr, const syntax::Cast& node) {
  const TypeId to = type(expr);
  const types::Type target = types()[to];
  const Operand operand = value(node.operand);
  if (!operand.value.valid()) return operand;
  const types::Type from = types()[operand.type];
  const bool is_bytes = from.kind == Kind::kString || from.kind == Kind::kArray || from.kind == Kind::kBuffer;
  if (is_bytes && (from.kind == Kind::kBuffer) != (target.kind == Kind::kBuffer) && types::is_by_reference(target))
    return cast_bytes(in_our_memory(operand), to);
  if (from.kind != Kind::kPointer || operand.is_address) return convert(operand, to);
  if (target.kind == Kind::kString) {  // (string[N])p reads
    const ValueId address = memory(target.size_bytes, "cast");
    const ValueId length = read_string(address, target.count, operand.value, from.space, true);
    return {to, address, true, AddressSpace::kBpf, length};
  }
  if (target.kind == Kind::kBuffer) {
    const ValueId address = memory(target.size_bytes, "cast");
    read(offset(address, 4), target.count, operand.value, from.space);
    ir().store(4, address, ir().constant(target.count));
    return {to, address, true};
  }
  return convert(operand, to);
}

}  // namespace espy::lower
