// Operators, arithmetic, comparison, casts and conversions.
#include <algorithm>
#include <bit>
#include <cstring>

#include "check/text_pattern.h"
#include "lower/lowering.h"
#include "program/program.h"

namespace espy::lower {
namespace {

using syntax::BinaryOp;
using syntax::UnaryOp;

constexpr uint32_t kInlineCompareBytes = 64;

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual; }

// The member of `from` that `of`'s member is made from: of records the one of the same name, else the one at its place.
const types::Member& counterpart(const types::Type& of, const types::Type& from, size_t member) {
  if (of.kind == Kind::kRecord && from.kind == Kind::kRecord) {
    const auto same = std::ranges::find(from.members, of.members[member].name, &types::Member::name);
    if (same != from.members.end()) return *same;
  }
  return from.members[member];
}

}  // namespace

Operand Lowering::unary_value(ExprId expr, const syntax::Unary& node) {
  const TypeId result = type(expr);
  const auto normalized = [&](Op op) { return normalize(ir().unary(op, scalar(node.operand)), result); };
  switch (node.op) {
    case UnaryOp::kNot: return {result, ir().binary(Op::k_eq, truth(value(node.operand)), ir().constant(0))};
    case UnaryOp::kBitNot: return {result, normalized(Op::k_not)};
    case UnaryOp::kNegate: return {result, normalized(Op::k_neg)};
    case UnaryOp::kDereference: return dereference(value(node.operand), result);
    case UnaryOp::kAddressOf: return {result, address_of(node.operand).value};
    default: return step(expr, node, true);
  }
}

Operand Lowering::binary_value(ExprId expr, const syntax::Binary& node) {
  if (node.op == BinaryOp::kLogicalAnd || node.op == BinaryOp::kLogicalOr) return logical_value(expr);
  const TypeId result = type(expr);
  if (node.op == BinaryOp::kMatch) return {result, matches_pattern(node)};
  if (const auto same = equals_probe_name(node)) return {result, equality(node.op, *same)};
  if (is_comparison(node.op) && !is_scalar(type(node.left)) && !is_scalar(type(node.right)) &&
      !types::is_aggregation(types()[type(node.left)]))
    return {result, compare_bytes(node)};
  return {result, binary_scalar(node, result)};
}

// The value of == or != where `same` is 1 if the operands are equal.
ValueId Lowering::equality(BinaryOp op, ValueId same) {
  return op == BinaryOp::kEqual ? same : ir().binary(Op::k_xor, same, ir().constant(1));
}

// For `probe == "name"` and the like, which compare indices: 1 if they are equal.
std::optional<ValueId> Lowering::equals_probe_name(const syntax::Binary& node) {
  for (const auto& [name, fired] : {std::pair{node.left, node.right}, std::pair{node.right, node.left}}) {
    const Kind kind = types()[type(fired)].kind;
    const auto known = program::is_probe_name(kind) ? text(name) : std::nullopt;
    if (!known) continue;
    const Operand index = value(fired);
    return ir().binary(Op::k_eq, index.value,
                       ir().constant(program::first_named(kind, *known, module_.program.probes)));
  }
  return std::nullopt;
}

ValueId Lowering::compare_bytes(const syntax::Binary& node) {
  // Of what is longer than a constant, the rest does not matter.
  for (const auto& [constant, other] : {std::pair{node.left, node.right}, std::pair{node.right, node.left}})
    if (const auto known = text(constant); known && known->size() + 1 < config().limits.max_strlen)
      allow_truncation(other);
  Operand left = value(node.left);
  Operand right = value(node.right);
  if (node.op != BinaryOp::kEqual && node.op != BinaryOp::kNotEqual) return compare_order(node.op, left, right);
  for (const auto& [constant_side, other] : {std::pair{node.left, &right}, std::pair{node.right, &left}}) {
    const auto known = text(constant_side);
    if (!known || types()[other->type].kind != Kind::kString) continue;
    if (known->size() >= types::capacity_with_nul(types()[other->type]))
      return ir().constant(node.op == BinaryOp::kNotEqual);
    return equality(node.op, equal_text(in_our_memory(*other), *known));
  }
  return equality(node.op, equal_values(left, right));
}

// A step has only the branch that leaves the loop, so that the verifier follows one path. The text is in scratch
// memory: kernels before 5.12 allow no variable offsets on the stack.
ValueId Lowering::matches_pattern(const syntax::Binary& node) {
  constexpr uint32_t kScratchBytes = 128;  // objects of this size are not on the stack
  const auto pattern = check::TextPattern::parse(text(node.right).value_or(""));
  if (!pattern) return ir().constant(0);
  if (pattern->ends_open && pattern->symbols < config().limits.max_strlen) allow_truncation(node.left);
  Operand subject = value(node.left);
  if (types()[subject.type].may_lack_nul)
    subject = convert(subject, types().string(types::capacity_with_nul(types()[subject.type])));
  const uint32_t capacity = types()[subject.type].count;
  const uint32_t size = std::bit_ceil(std::max(capacity, kScratchBytes));
  const ValueId bytes = memory(size, "matched");
  read_text(bytes, subject, false);
  const ValueId table = constant_bytes(
      {reinterpret_cast<const char*>(pattern->accepted.data()), pattern->accepted.size() * sizeof(uint64_t)});
  const auto is_zero = [&](ValueId number) {  // of one that is not negative
    return ir().binary(Op::k_shr, ir().binary(Op::k_sub, number, 1), 63);
  };
  const ir::SlotId states = new_slot("states");
  write_slot(states, ir().constant(1));
  ir().count_up(capacity, [&](ValueId index, BlockId done) {
    const ValueId at = ir().binary(Op::k_and, index, static_cast<int64_t>(size - 1));
    const ValueId byte = ir().load(1, ir().binary(Op::k_add, bytes, at));
    const ValueId now = read_slot(states);
    const BlockId more = ir().add_block("more");
    ir().branch(Condition::ne, ir().binary(Op::k_or, is_zero(byte), is_zero(now)), 0, done, more);
    ir().enter(more);
    const ValueId accepted = ir().load(8, ir().binary(Op::k_add, table, ir().binary(Op::k_shl, byte, 3)));
    const ValueId moved = ir().binary(Op::k_shl, ir().binary(Op::k_and, now, accepted), 1);
    const ValueId kept = ir().binary(Op::k_and, now, static_cast<int64_t>(pattern->repeated));
    write_slot(states, ir().binary(Op::k_or, moved, kept));
  });
  return ir().binary(Op::k_and, ir().binary(Op::k_shr, read_slot(states), pattern->symbols), 1);
}

ValueId Lowering::binary_scalar(const syntax::Binary& node, TypeId result) {
  Operand left{type(node.left), scalar(node.left)};
  Operand right{type(node.right), scalar(node.right)};
  // A division compares its divisor with zero.
  if (node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo) right = opaque_copy(right);
  if (is_comparison(node.op) && has_many_branches()) {
    if (!is_constant(node.left)) left = opaque_copy(left);
    if (!is_constant(node.right)) right = opaque_copy(right);
  }
  if (is_comparison(node.op)) return compare(node.op, left, right, is_unsigned_pair(node.left, node.right));
  const ValueId out = calculate(node.op, left, right, result);
  const bool are_pointers = types()[left.type].kind == Kind::kPointer && types()[right.type].kind == Kind::kPointer;
  if (node.op != BinaryOp::kSubtract || !are_pointers) return out;
  const uint32_t size = std::max(types()[module_.complete(types()[left.type].element)].size_bytes, 1u);
  return ir().binary(Op::k_sdiv, out, ir().constant(size));
}

// C's rule for comparisons of 64 bits: unsigned if either side is an unsigned 64-bit value. Narrower unsigned values
// are positive in 64 bits, where signed and unsigned comparisons agree.
bool Lowering::is_unsigned_pair(ExprId left, ExprId right) {
  const auto is_unsigned_word = [&](ExprId expr) {
    const types::Type& word = types()[type(expr)];
    return word.kind == Kind::kPointer || (word.size_bytes == 8 && !word.is_signed && word.kind != Kind::kBool);
  };
  return is_unsigned_word(left) || is_unsigned_word(right);
}

Operand Lowering::step(ExprId expr, const syntax::Unary& node, bool is_used) {
  const bool is_up = node.op == UnaryOp::kPreIncrement || node.op == UnaryOp::kPostIncrement;
  const Update change{.op = is_up ? BinaryOp::kAdd : BinaryOp::kSubtract,
                      .type = type(node.operand),
                      .gives_old = node.op == UnaryOp::kPostIncrement || node.op == UnaryOp::kPostDecrement,
                      .is_used = is_used};
  const Operand out = update_target(node.operand, {types().int_type(1, true), ir().constant(1)}, change);
  return is_used ? Operand{type(expr).valid() ? type(expr) : out.type, out.value} : Operand{};
}

void Lowering::assign_with_operator(const syntax::Assign& node) {
  update_target(node.target, value(node.value), {.op = *node.op, .type = type(node.target)});
}

ValueId Lowering::updated_value(const Update& change, Operand old, Operand amount) {
  return calculate(change.op, old, amount, old.type.valid() ? old.type : change.type);
}

// target = target OP amount. Returns the old or the new value.
Operand Lowering::update_target(ExprId target, Operand amount, const Update& change) {
  const check::ExprFact& fact = unit().fact(target);
  if (amount.is_address) amount = convert(amount, types().int64());
  if (fact.variable.valid() && ast().get<syntax::Variable>(target)) {
    const Operand old = read_variable(fact.variable);
    const ValueId now = updated_value(change, old, amount);
    write_variable(fact.variable, {old.type, now});
    return {old.type, change.gives_old ? old.value : now};
  }
  const ir::SlotId result = new_slot("updated");
  const auto clear_result = [&] {
    if (change.is_used) write_slot(result, ir().constant(0));
  };
  TypeId type;
  if (fact.map.valid()) {
    type = module_.script_map(fact.map).value;
    clear_result();
    with_new_value(element(target), [&](ValueId address) { update_in_place(address, type, amount, change, result); });
  } else {
    const Operand to = location(target);
    type = to.type;
    clear_result();
    if (to.is_address && to.space == AddressSpace::kBpf) update_in_place(to.value, type, amount, change, result);
  }
  return change.is_used ? Operand{type, read_slot(result)} : Operand{};
}

void Lowering::update_in_place(ValueId address, TypeId type, Operand amount, const Update& change, ir::SlotId result) {
  const types::Type layout = types()[type];
  const bool can_add = change.op == BinaryOp::kAdd || change.op == BinaryOp::kSubtract;
  if (can_add && !change.is_used && layout.size_bytes == 8 && layout.kind == Kind::kInt) {
    // Atomic, so that concurrent updates are not lost.
    ir().atomic_add(8, address, change.op == BinaryOp::kAdd ? amount.value : ir().unary(Op::k_neg, amount.value));
    return;
  }
  const Operand old = load(address, type);
  const ValueId now = updated_value(change, old, amount);
  store(address, {type, now});
  if (change.is_used) write_slot(result, change.gives_old ? old.value : now);
}

// A buffer has its length before its bytes, a string or an array does not.
Operand Lowering::cast_bytes(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  const bool gives_buffer = target.kind == Kind::kBuffer;
  const uint32_t given = gives_buffer ? from.size_bytes : from.count;
  const uint32_t wanted = gives_buffer ? target.count : target.size_bytes;
  const uint32_t moved = std::min(given, wanted);
  const ValueId address = zeroed_memory(target.size_bytes, "bytes");
  read(offset(address, gives_buffer ? 4 : 0), moved, offset(operand.value, gives_buffer ? 0 : 4), AddressSpace::kBpf);
  if (gives_buffer) ir().store(4, address, ir().constant(moved));
  if (target.kind == Kind::kString) ir().store(1, address, ir().constant(0), target.size_bytes - 1);
  return {to, address, true};
}

Operand Lowering::cast_value(ExprId expr, const syntax::Cast& node) {
  const TypeId to = type(expr);
  const types::Type target = types()[to];
  const Operand operand = value(node.operand);
  if (!operand.value.valid()) return operand;
  const types::Type from = types()[operand.type];
  const bool is_bytes = from.kind == Kind::kString || from.kind == Kind::kArray || from.kind == Kind::kBuffer;
  if (is_bytes && (from.kind == Kind::kBuffer) != (target.kind == Kind::kBuffer) && types::is_by_reference(target))
    return cast_bytes(in_our_memory(operand), to);
  if (from.kind == Kind::kString && target.kind == Kind::kBool)
    return {to, ir().binary(Op::k_ne, truth(operand), ir().constant(0))};
  if (from.kind != Kind::kPointer || operand.is_address) return convert(operand, to);
  if (target.kind == Kind::kString) {  // (string[N])p reads from the pointer
    const ValueId address = memory(target.size_bytes, "cast");
    const ValueId length = read_string(address, target.count, operand.value, from.space, true);
    if (target.may_be_cut && target.count >= config().limits.max_strlen)
      count_truncated({}, length, Condition::uge, target.count - 1);
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

// ---- Arithmetic and comparison of operands
//
// A scalar is 64 bits wide in a register, extended by the sign of its type. Each result is normalized to the width of
// its type.

ValueId Lowering::calculate(BinaryOp op, Operand left, Operand right, TypeId result) {
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
  return type.kind == Kind::kPointer ? out : normalize(out, result);
}

// A quotient or remainder; 1, counted, if the divisor is zero.
ValueId Lowering::divide(Op op, ValueId dividend, ValueId divisor) {
  const auto quotient = [&] { return ir().binary(op, dividend, divisor); };
  const ir::Instruction& known = functions_.function().values[divisor];
  if (known.op == Op::k_konst && known.imm != 0) return quotient();
  return select(Condition::ne, divisor, ir().constant(0), quotient, [&] {
    count_loss_here(program::LossKind::kValue, "division(s) by zero returned 1");
    return ir().constant(1);
  });
}

ValueId Lowering::compare(BinaryOp op, Operand left, Operand right, bool is_unsigned) {
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

// Short objects are compared word by word without a branch, longer ones in a loop that ends at the first difference.
ValueId Lowering::equal_bytes(ValueId left, ValueId right, uint32_t size_bytes) {
  const uint32_t align = std::min(alignment_of(left), alignment_of(right));
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

ValueId Lowering::equal_bytes_by_loop(ValueId left, ValueId right, uint32_t size_bytes, uint32_t width) {
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
void Lowering::add_missing_nul(Operand& left, Operand& right) {
  for (const auto& [shorter, longer] : {std::pair{&left, &right}, std::pair{&right, &left}}) {
    const types::Type& type = types()[shorter->type];
    if (type.may_lack_nul && type.count < types()[longer->type].size_bytes)
      *shorter = convert(*shorter, types().string(types::capacity_with_nul(type)));
  }
}

// The first bytes that differ decide. Without such within the smaller capacity, which has a NUL, the strings are equal.
ValueId Lowering::compare_order(BinaryOp op, Operand left, Operand right) {
  left = in_our_memory(left);
  right = in_our_memory(right);
  add_missing_nul(left, right);
  const uint32_t size = std::min(types()[left.type].size_bytes, types()[right.type].size_bytes);
  const ValueId difference = first_difference(ir(), left.value, right.value, size);
  return compare(op, {types().int64(), difference}, {types().int64(), ir().constant(0)}, false);
}

// Strings are zero-padded, so those that are equal within the smaller capacity are equal, if that has a NUL.
ValueId Lowering::equal_values(Operand left, Operand right) {
  left = in_our_memory(left);
  right = in_our_memory(right);
  add_missing_nul(left, right);
  const types::Type a = types()[left.type];
  const types::Type b = types()[right.type];
  if (types::is_struct_like(a) && types::is_struct_like(b) && left.type != right.type) {
    ValueId all = ir().constant(1);
    for (size_t i = 0; i < a.members.size() && i < b.members.size(); ++i) {
      const Operand x = load(offset(left.value, a.members[i].offset_bytes()), a.members[i].type);
      const types::Member& other = counterpart(a, b, i);
      const Operand y = load(offset(right.value, other.offset_bytes()), other.type);
      const ValueId same = x.is_address ? equal_values(x, y) : ir().binary(Op::k_eq, x.value, y.value);
      all = ir().binary(Op::k_and, all, same);
    }
    return all;
  }
  return equal_bytes(left.value, right.value, std::min(a.size_bytes, b.size_bytes));
}

// The words of `text` are immediates; the last one may include zeros of the padding.
ValueId Lowering::equal_text(Operand operand, std::string text) {
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

// ---- Conversions: into our memory, into another type, into the bytes of a larger object

Operand Lowering::in_our_memory(Operand operand) {
  if (!operand.is_address || operand.space == AddressSpace::kBpf) return operand;
  const types::Type type = types()[operand.type];
  const ValueId address = memory(type.size_bytes, {});
  Operand out{operand.type, address, true};
  if (type.kind == Kind::kString) {
    out.length = read_text(address, operand, true);
  } else {
    read(address, type.size_bytes, operand.value, operand.space);
    zero_padding(address, operand.type);
  }
  return out;
}

Operand Lowering::in_aligned_memory(Operand operand) {
  operand = in_our_memory(operand);
  if (!operand.is_address || alignment_of(operand.value) == 8) return operand;
  const uint32_t size = types()[operand.type].size_bytes;
  const ValueId aligned = memory(size, "aligned");
  copy(aligned, operand.value, size);
  operand.value = aligned;
  return operand;
}

void Lowering::store_scalar(ValueId address, ValueId value, uint32_t size_bytes) {
  CHECK(std::has_single_bit(size_bytes) && size_bytes <= 8);
  if (alignment_of(address) >= size_bytes) return ir().store(static_cast<uint8_t>(size_bytes), address, value);
  const uint32_t width = alignment_of(address);
  for (uint32_t at = 0; at < size_bytes; at += width)
    ir().store(static_cast<uint8_t>(width), address, at ? ir().binary(Op::k_shr, value, at * 8) : value, at);
}

// Marks the bits of a type that hold its value, in a mask for each byte.
void Lowering::mark_used(TypeId id, uint32_t at_bits, std::vector<uint8_t>& used) {
  const types::Type type = types()[module_.complete(id)];
  const auto mark = [&](uint32_t begin, uint32_t bits) {
    for (uint32_t bit = begin; bit < begin + bits && bit / 8 < used.size(); ++bit)
      used[bit / 8] = static_cast<uint8_t>(used[bit / 8] | 1u << bit % 8);
  };
  if (type.kind == Kind::kArray) {
    const uint32_t element_bits = types()[module_.complete(type.element)].size_bytes * 8;
    for (uint32_t i = 0; i < type.count && at_bits / 8 < used.size() && element_bits > 0; ++i)
      mark_used(type.element, at_bits + i * element_bits, used);
  } else if (type.kind == Kind::kStruct && type.complete && !type.members.empty()) {
    for (const types::Member& member : type.members) {
      if (member.bit_size > 0)
        mark(at_bits + member.offset_bits, member.bit_size);
      else
        mark_used(member.type, at_bits + member.offset_bits, used);
    }
  } else {
    mark(at_bits, type.size_bytes * 8);
  }
}

// Zeros the bytes and bits between the members of a struct of C that was read. They have no value (C17 6.2.6.1), but
// keys are compared by their bytes. Longer gaps are left: debug information may not tell what is there.
void Lowering::zero_padding(ValueId address, TypeId id) {
  constexpr uint32_t kMostBytes = 512, kMostGap = 7;
  const types::Type type = types()[module_.complete(id)];
  const bool is_struct = type.kind == Kind::kStruct;
  const bool has_structs = type.kind == Kind::kArray && types()[type.element].kind == Kind::kStruct;
  if ((!is_struct && !has_structs) || type.size_bytes > kMostBytes) return;
  std::vector<uint8_t> used(type.size_bytes);
  mark_used(id, 0, used);
  for (uint32_t at = 0; at < used.size();) {
    uint32_t gap = 0;
    while (at + gap < used.size() && used[at + gap] == 0) ++gap;
    for (uint32_t i = 0; i < gap && gap <= kMostGap; ++i) ir().store(1, address, ir().constant(0), at + i);
    at += gap;
    if (gap > 0) continue;
    if (used[at] != UINT8_MAX) ir().store(1, address, ir().binary(Op::k_and, ir().load(1, address, at), used[at]), at);
    ++at;
  }
}

void Lowering::store(ValueId address, Operand operand) {
  const types::Type type = types()[operand.type];
  if (type.size_bytes == 0) return;
  if (!operand.is_address) {
    store_scalar(address, operand.value, type.size_bytes);
  } else if (operand.space == AddressSpace::kBpf) {
    copy(address, operand.value, type.size_bytes);
  } else if (type.kind == Kind::kString) {
    read_text(address, operand, true);
  } else {
    read(address, type.size_bytes, operand.value, operand.space);
    zero_padding(address, operand.type);
  }
}

// Strings are zero-padded: a larger capacity needs more zeros, a smaller one a NUL.
void Lowering::copy_string(ValueId destination, Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const uint32_t capacity = types()[to].count;
  const bool fits =
      from.count < capacity || (from.count == capacity && (!from.may_lack_nul || types()[to].may_lack_nul));
  if (fits && from.count < capacity) zero(destination, capacity);
  if (operand.space != AddressSpace::kBpf && fits && from.may_lack_nul) {
    read_text(destination, operand, from.count == capacity);
  } else if (operand.space != AddressSpace::kBpf) {
    read_string(destination, capacity, operand.value, operand.space, true);
  } else if (fits) {
    copy(destination, operand.value, from.count);
  } else {
    copy(destination, operand.value, capacity);
    ir().store(1, destination, ir().constant(0), capacity - 1);
  }
}

// Member by member.
void Lowering::store_members(ValueId address, Operand operand, TypeId to) {
  const types::Type source = types()[operand.type];
  const types::Type target = types()[to];
  zero(address, target.size_bytes);
  operand = in_our_memory(operand);
  for (size_t i = 0; i < target.members.size(); ++i) {
    const types::Member& given = counterpart(target, source, i);
    const Operand part = load(offset(operand.value, given.offset_bytes()), given.type);
    store_converted(offset(address, target.members[i].offset_bytes()), part, target.members[i].type);
  }
}

// Tuples and records, but not structs of C.
bool Lowering::is_by_member(TypeId from, TypeId to) const {
  const types::Type& target = types()[to];
  return types::is_struct_like(target) && types::is_struct_like(types()[from]) && target.kind != Kind::kStruct;
}

bool Lowering::are_strings(TypeId from, TypeId to) const {
  return types()[from].kind == Kind::kString && types()[to].kind == Kind::kString;
}

void Lowering::store_converted(ValueId address, Operand operand, TypeId to) {
  if (operand.type != to && operand.is_address && are_strings(operand.type, to))
    return copy_string(address, operand, to);
  if (operand.type != to && operand.is_address && is_by_member(operand.type, to))
    return store_members(address, operand, to);
  store(address, convert(operand, to));
}

// The operand's bytes in a copy that is as large as the type `to`, the rest zeros.
Operand Lowering::padded_copy(Operand operand, TypeId to) {
  const uint32_t size = types()[to].size_bytes;
  const uint32_t given = types()[operand.type].size_bytes;
  const ValueId address = memory(std::max(size, given), {});
  if (size > given) zero(address, size);
  store(address, operand);
  return {to, address, true};
}

Operand Lowering::convert_scalar(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  // The bytes of a number are those of 64 bits, with its sign.
  if (types::is_by_reference(target)) return padded_copy({types().int_type(8, from.is_signed), operand.value}, to);
  if (target.kind != Kind::kBool) return {to, normalize(operand.value, to)};
  return {to, from.kind == Kind::kBool ? operand.value : ir().binary(Op::k_ne, operand.value, ir().constant(0))};
}

// Bytes as an integer, or an array as a pointer.
Operand Lowering::bytes_as_scalar(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  if (target.kind == Kind::kPointer) return {to, operand.value};
  const ValueId bytes = in_our_memory(operand).value;
  const uint32_t size = std::min(from.size_bytes, target.size_bytes);
  if (std::has_single_bit(size)) return {to, normalize(load_scalar(bytes, 0, static_cast<uint8_t>(size), false), to)};
  const ValueId number = memory(8, "number");
  ir().store(8, number, ir().constant(0));
  copy(number, bytes, size);
  return {to, normalize(ir().load(8, number), to)};
}

Operand Lowering::convert(Operand operand, TypeId to) {
  if (operand.type == to || !to.valid() || !operand.type.valid()) return operand;
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  if (target.kind == Kind::kVoid) return operand;
  if (types::is_aggregation(from) && !types::is_by_reference(target)) return reduce(operand, to);
  if (!operand.is_address) return convert_scalar(operand, to);
  if (!types::is_by_reference(target)) return bytes_as_scalar(operand, to);
  if (are_strings(operand.type, to) || is_by_member(operand.type, to)) {
    const ValueId address = memory(target.size_bytes, {});
    store_converted(address, operand, to);
    return {to, address, true};
  }
  if (from.size_bytes < target.size_bytes) return padded_copy(operand, to);
  operand.type = to;
  return operand;
}

Operand Lowering::reduce(Operand aggregate, TypeId to) {
  const types::Type type = types()[aggregate.type];
  const ValueId first = ir().load(8, aggregate.value);
  if (type.kind == Kind::kAvg || type.kind == Kind::kStats) {
    const ValueId count = ir().load(8, aggregate.value, 8);
    return {to, ir().binary(type.is_signed ? Op::k_sdiv : Op::k_udiv, first, count)};
  }
  return {to, normalize(first, to)};
}

ValueId Lowering::extend(ValueId value, uint8_t size_bytes, bool is_signed) {
  switch (size_bytes) {
    case 1: return ir().unary(is_signed ? Op::k_sext8 : Op::k_zext8, value);
    case 2: return ir().unary(is_signed ? Op::k_sext16 : Op::k_zext16, value);
    case 4: return ir().unary(is_signed ? Op::k_sext32 : Op::k_zext32, value);
    default: return value;
  }
}

ValueId Lowering::normalize(ValueId value, TypeId type_id) {
  const types::Type& type = types()[type_id];
  if (type.kind == Kind::kBool) return ir().binary(Op::k_ne, value, ir().constant(0));
  if (!types::is_integer(type) && type.kind != Kind::kUsername) return value;
  return extend(value, static_cast<uint8_t>(type.size_bytes), type.is_signed);
}

}  // namespace espy::lower
