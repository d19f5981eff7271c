#include "lower/operators.h"

#include <algorithm>

#include "lower/access.h"
#include "lower/branches.h"
#include "lower/builtin_calls.h"
#include "lower/expressions.h"
#include "lower/maps.h"
#include "program/probe_names.h"

namespace espy::lower {
namespace {

using syntax::BinaryOp;
using syntax::UnaryOp;

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual; }

}  // namespace

// C's rule for comparisons of 64 bits: unsigned if either side is an unsigned 64-bit value. Narrower unsigned values
// are positive in 64 bits, where signed and unsigned comparisons agree.
bool Operators::is_unsigned_pair(ExprId left, ExprId right) {
  const auto is_unsigned_word = [&](ExprId expr) {
    const types::Type& type = types()[scope_.type(expr)];
    return type.kind == Kind::kPointer || (type.size_bytes == 8 && !type.is_signed && type.kind != Kind::kBool);
  };
  return is_unsigned_word(left) || is_unsigned_word(right);
}

Operand Operators::binary(ExprId expr, const syntax::Binary& node) {
  if (node.op == BinaryOp::kLogicalAnd || node.op == BinaryOp::kLogicalOr) return branches_.logical(expr);
  const TypeId result = scope_.type(expr);
  if (const auto same = equals_probe_name(node)) return {result, equality(node.op, *same)};
  if (is_comparison(node.op) && !is_scalar(scope_.type(node.left)) && !is_scalar(scope_.type(node.right)) &&
      !types::is_aggregation(types()[scope_.type(node.left)]))
    return {result, compare_bytes(node)};
  return {result, binary_scalar(node, result)};
}

// The value of == or != where `same` is 1 if the operands are equal.
ValueId Operators::equality(BinaryOp op, ValueId same) {
  return op == BinaryOp::kEqual ? same : ir().binary(Op::k_xor, same, ir().constant(1));
}

// For `probe == "name"` and the like, which compare indices: 1 if they are equal.
std::optional<ValueId> Operators::equals_probe_name(const syntax::Binary& node) {
  for (const auto& [name, fired] : {std::pair{node.left, node.right}, std::pair{node.right, node.left}}) {
    const Kind kind = types()[scope_.type(fired)].kind;
    const auto known = program::is_probe_name(kind) ? scope_.text(name) : std::nullopt;
    if (!known) continue;
    const Operand index = expressions_.value(fired);
    return ir().binary(Op::k_eq, index.value,
                       ir().constant(program::first_named(kind, *known, module_.program.probes)));
  }
  return std::nullopt;
}

ValueId Operators::compare_bytes(const syntax::Binary& node) {
  // Of what is longer than a constant, the rest does not matter.
  for (const auto& [constant, other] : {std::pair{node.left, node.right}, std::pair{node.right, node.left}})
    if (const auto known = scope_.text(constant); known && known->size() + 1 < config().max_strlen)
      builtins_.allow_truncation(other);
  Operand left = expressions_.value(node.left);
  Operand right = expressions_.value(node.right);
  if (node.op != BinaryOp::kEqual && node.op != BinaryOp::kNotEqual)
    return arithmetic_.compare_order(node.op, left, right);
  for (const auto& [constant_side, other] : {std::pair{node.left, &right}, std::pair{node.right, &left}}) {
    const auto known = scope_.text(constant_side);
    if (!known || types()[other->type].kind != Kind::kString) continue;
    if (known->size() >= types::capacity_with_nul(types()[other->type]))
      return ir().constant(node.op == BinaryOp::kNotEqual);
    return equality(node.op, arithmetic_.equal_text(conversions_.in_our_memory(*other), *known));
  }
  return equality(node.op, arithmetic_.equal_values(left, right));
}

ValueId Operators::binary_scalar(const syntax::Binary& node, TypeId result) {
  Operand left{scope_.type(node.left), expressions_.scalar(node.left)};
  Operand right{scope_.type(node.right), expressions_.scalar(node.right)};
  // A division compares its divisor with zero.
  if (node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo) right = laundering_.opaque_copy(right);
  if (is_comparison(node.op) && laundering_.has_many_branches()) {
    if (!scope_.is_constant(node.left)) left = laundering_.opaque_copy(left);
    if (!scope_.is_constant(node.right)) right = laundering_.opaque_copy(right);
  }
  if (is_comparison(node.op)) return arithmetic_.compare(node.op, left, right, is_unsigned_pair(node.left, node.right));
  const ValueId out = arithmetic_.calculate(node.op, left, right, result);
  const bool are_pointers = types()[left.type].kind == Kind::kPointer && types()[right.type].kind == Kind::kPointer;
  if (node.op != BinaryOp::kSubtract || !are_pointers) return out;
  const uint32_t size = std::max(types()[module_.complete(types()[left.type].element)].size_bytes, 1u);
  return ir().binary(Op::k_sdiv, out, ir().constant(size));
}

Operand Operators::unary(ExprId expr, const syntax::Unary& node) {
  const TypeId result = scope_.type(expr);
  const auto normalized = [&](Op op) {
    return conversions_.normalize(ir().unary(op, expressions_.scalar(node.operand)), result);
  };
  switch (node.op) {
    case UnaryOp::kNot:
      return {result, ir().binary(Op::k_eq, branches_.truth(expressions_.value(node.operand)), ir().constant(0))};
    case UnaryOp::kBitNot: return {result, normalized(Op::k_not)};
    case UnaryOp::kNegate: return {result, normalized(Op::k_neg)};
    case UnaryOp::kDereference: return reads_.dereference(expressions_.value(node.operand), result);
    case UnaryOp::kAddressOf: return {result, access_.address_of(node.operand).value};
    default: return step(expr, node, true);
  }
}

Operand Operators::step(ExprId expr, const syntax::Unary& node, bool is_used) {
  const bool is_up = node.op == UnaryOp::kPreIncrement || node.op == UnaryOp::kPostIncrement;
  const Update change{.op = is_up ? BinaryOp::kAdd : BinaryOp::kSubtract,
                      .type = scope_.type(node.operand),
                      .gives_old = node.op == UnaryOp::kPostIncrement || node.op == UnaryOp::kPostDecrement,
                      .is_used = is_used};
  const Operand out = update(node.operand, {types().int_type(1, true), ir().constant(1)}, change);
  return is_used ? Operand{scope_.type(expr).valid() ? scope_.type(expr) : out.type, out.value} : Operand{};
}

void Operators::assign(const syntax::Assign& node) {
  update(node.target, expressions_.value(node.value), {.op = *node.op, .type = scope_.type(node.target)});
}

ValueId Operators::changed(const Update& change, Operand old, Operand amount) {
  return arithmetic_.calculate(change.op, old, amount, old.type.valid() ? old.type : change.type);
}

// target = target OP amount. Returns the old or the new value.
Operand Operators::update(ExprId target, Operand amount, const Update& change) {
  const check::ExprFact& fact = scope_.fact(target);
  if (amount.is_address) amount = conversions_.convert(amount, types().int64());
  if (fact.variable.valid() && ast().get<syntax::Variable>(target)) {
    const Operand old = variables_.read(fact.variable);
    const ValueId now = changed(change, old, amount);
    variables_.write(fact.variable, {old.type, now});
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
    elements_.with_new_value(maps_.element(target),
                             [&](ValueId address) { update_in_place(address, type, amount, change, result); });
  } else {
    const Operand to = access_.location(target);
    type = to.type;
    clear_result();
    if (to.is_address && to.space == AddressSpace::kBpf) update_in_place(to.value, type, amount, change, result);
  }
  return change.is_used ? Operand{type, read_slot(result)} : Operand{};
}

void Operators::update_in_place(ValueId address, TypeId type, Operand amount, const Update& change, ir::SlotId result) {
  const types::Type layout = types()[type];
  const bool can_add = change.op == BinaryOp::kAdd || change.op == BinaryOp::kSubtract;
  if (can_add && !change.is_used && layout.size_bytes == 8 && layout.kind == Kind::kInt) {
    // Atomic, so that concurrent updates are not lost.
    ir().atomic_add(8, address, change.op == BinaryOp::kAdd ? amount.value : ir().unary(Op::k_neg, amount.value));
    return;
  }
  const Operand old = memory_.load(address, type);
  const ValueId now = changed(change, old, amount);
  conversions_.store(address, {type, now});
  if (change.is_used) write_slot(result, change.gives_old ? old.value : now);
}

// A buffer has its length before its bytes, a string or an array does not.
Operand Operators::cast_bytes(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  const bool gives_buffer = target.kind == Kind::kBuffer;
  const uint32_t given = gives_buffer ? from.size_bytes : from.count;
  const uint32_t wanted = gives_buffer ? target.count : target.size_bytes;
  const uint32_t moved = std::min(given, wanted);
  const ValueId address = memory_.allocate(target.size_bytes, "bytes");
  memory_.zero(address, target.size_bytes);
  reads_.read(offset(address, gives_buffer ? 4 : 0), moved, offset(operand.value, gives_buffer ? 0 : 4),
              AddressSpace::kBpf);
  if (gives_buffer) ir().store(4, address, ir().constant(moved));
  if (target.kind == Kind::kString) ir().store(1, address, ir().constant(0), target.size_bytes - 1);
  return {to, address, true};
}

Operand Operators::cast(ExprId expr, const syntax::Cast& node) {
  const TypeId to = scope_.type(expr);
  const types::Type target = types()[to];
  const Operand operand = expressions_.value(node.operand);
  if (!operand.value.valid()) return operand;
  const types::Type from = types()[operand.type];
  const bool is_bytes = from.kind == Kind::kString || from.kind == Kind::kArray || from.kind == Kind::kBuffer;
  if (is_bytes && (from.kind == Kind::kBuffer) != (target.kind == Kind::kBuffer) && types::is_by_reference(target))
    return cast_bytes(conversions_.in_our_memory(operand), to);
  if (from.kind != Kind::kPointer || operand.is_address) return conversions_.convert(operand, to);
  if (target.kind == Kind::kString) {  // (string[N])p reads from the pointer
    const ValueId address = memory_.allocate(target.size_bytes, "cast");
    const ValueId length = reads_.read_string(address, target.count, operand.value, from.space, true);
    if (target.may_be_cut && target.count >= config().max_strlen)
      builtins_.count_truncated({}, length, Condition::uge, target.count - 1);
    return {to, address, true, AddressSpace::kBpf, length};
  }
  if (target.kind == Kind::kBuffer) {
    const ValueId address = memory_.allocate(target.size_bytes, "cast");
    reads_.read(offset(address, 4), target.count, operand.value, from.space);
    ir().store(4, address, ir().constant(target.count));
    return {to, address, true};
  }
  return conversions_.convert(operand, to);
}

}  // namespace espy::lower
