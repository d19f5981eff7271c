#include "check/binary_operators.h"

#include "check/fold_constants.h"
#include "check/func_symbol.h"
#include "check/type_rules.h"
#include "program/probe_names.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

TypeId BinaryOperators::binary(ExprId id, const Binary& node) {
  expressions_.read_value(node.left);
  expressions_.read_value(node.right);
  if (is_comparison(node.op)) {
    use_func_beside(node.left, node.right);
    use_func_beside(node.right, node.left);
  }
  const TypeId left = facts_.type(node.left);
  const TypeId right = facts_.type(node.right);
  if (!left || !right) return {};
  if (const auto folded = fold_operands(id, node)) return *folded;
  if (is_logical(node.op)) return logical(id, node);
  if (is_comparison(node.op)) return comparison(node, left, right);
  return arithmetic(node, left, right);
}

// `func` compares with symbols and addresses of the kernel as its address.
void BinaryOperators::use_func_beside(ExprId value, ExprId other) {
  const types::Type& type = facts_.type_of(facts_.type(other));
  if (type.kind == Kind::kKernelSymbol || type.kind == Kind::kPointer || is_int_like(type))
    use_func_as_symbol(facts_, value, facts_.types().simple(Kind::kKernelSymbol));
}

TypeId BinaryOperators::logical(ExprId id, const Binary& node) {
  for (const ExprId side : {node.left, node.right})
    if (!is_truthy(facts_.type_of(facts_.type(side))))
      reporter_.error("not-a-condition", facts_.span(side),
                      "a condition must be an integer, a pointer or a string, not " + facts_.show(facts_.type(side)));
  const auto known = facts_.integer(node.left);
  if (known && (*known != 0) == (node.op == BinaryOp::kLogicalOr)) facts_.fact(id).constant = int64_t{*known != 0};
  return facts_.types().bool_type();
}

std::optional<TypeId> BinaryOperators::fold_operands(ExprId id, const Binary& node) {
  const auto a = facts_.number(node.left);
  const auto b = facts_.number(node.right);
  // Numbers that are not negative compare the same as signed and as unsigned ones.
  const auto is_natural = [](Number n) { return n.is_unsigned || n.bits >= 0; };
  const bool compares = a && b && is_comparison(node.op) && is_natural(*a) && is_natural(*b);
  if (a && b &&
      (is_logical(node.op) || compares ||
       (facts_.is_number_literal(node.left) && facts_.is_number_literal(node.right)))) {
    const auto folded = fold_binary(node.op, *a, *b);
    if (!folded) {
      reporter_.error("bad-constant", facts_.span(id), "unable to fold literals due to overflow or underflow");
      return TypeId{};
    }
    if (is_comparison(node.op) || is_logical(node.op)) {
      facts_.fact(id).constant = folded->bits;
      return facts_.types().bool_type();
    }
    return facts_.set_number(id, *folded);
  }
  const auto left = facts_.text(node.left);
  const auto right = facts_.text(node.right);
  if (left && right && is_comparison(node.op)) {
    const int order = left->compare(*right);
    const auto folded = fold_binary(node.op, {order}, {0});
    facts_.fact(id).constant = folded->bits;
    return facts_.types().bool_type();
  }
  return std::nullopt;
}

// What is not negative is never below zero, and of fewer than 64 bits never equal to a negative number. Comparisons
// with a `uint64` or a pointer have no sign.
void BinaryOperators::warn_if_never(const Binary& node, TypeId left, TypeId right) {
  const bool is_swapped = node.op == BinaryOp::kGreater || (node.op == BinaryOp::kEqual && facts_.integer(node.left));
  if (node.op != BinaryOp::kLess && node.op != BinaryOp::kGreater && node.op != BinaryOp::kEqual) return;
  const ExprId value = is_swapped ? node.right : node.left, limit = is_swapped ? node.left : node.right;
  const types::Type type = facts_.type_of(is_swapped ? right : left);
  const auto number = facts_.integer(limit);
  const bool is_pointer = type.kind == Kind::kPointer;
  const bool is_unsigned = is_pointer || (type.kind == Kind::kInt && !type.is_signed);
  if (!is_unsigned || !number || facts_.integer(value)) return;
  const bool is_below = node.op != BinaryOp::kEqual && *number == 0;
  const bool is_negative = *number < 0 && type.size_bytes < 8 && facts_.type_of(is_swapped ? left : right).is_signed;
  if (!is_below && !is_negative) return;
  reporter_.warning("never-true", node.op_span,
                    "this is never true: " + facts_.show(is_swapped ? right : left) +
                        (is_pointer ? " has no sign" : " is not negative"),
                    is_pointer
                        ? "`is_err(POINTER)` tells whether it is an error of the kernel"
                        : "`(int" + std::to_string(type.size_bytes * 8) + ")VALUE` takes it for a signed number");
}

TypeId BinaryOperators::comparison(const Binary& node, TypeId left, TypeId right) {
  const Kind a = facts_.type_of(left).kind;
  const Kind b = facts_.type_of(right).kind;
  const bool is_equality = node.op == BinaryOp::kEqual || node.op == BinaryOp::kNotEqual;
  const bool a_scalar = is_int_like(facts_.type_of(left)) || a == Kind::kPointer;
  const bool b_scalar = is_int_like(facts_.type_of(right)) || b == Kind::kPointer;
  if (a_scalar && b_scalar) {
    warn_if_never(node, left, right);
    adapt_literal(node.left, right);
    adapt_literal(node.right, left);
    return facts_.types().bool_type();
  }
  // Kinds whose values are numbers that are printed in another form.
  const auto is_number_like = [](Kind kind) {
    return kind == Kind::kKernelSymbol || kind == Kind::kCgroupPath || kind == Kind::kUsername;
  };
  if ((is_number_like(a) && (b_scalar || a == b)) || (is_number_like(b) && a_scalar)) return facts_.types().bool_type();
  if (a == Kind::kString && b == Kind::kString) return facts_.types().bool_type();
  if (is_equality &&
      ((program::is_probe_name(a) && facts_.text(node.right)) || (program::is_probe_name(b) && facts_.text(node.left))))
    return facts_.types().bool_type();
  if (is_equality && a == b) {
    if (a == Kind::kBuffer || program::is_probe_name(a)) return facts_.types().bool_type();
    const bool is_composite = a == Kind::kTuple || a == Kind::kRecord || a == Kind::kArray || a == Kind::kInet ||
                              a == Kind::kMac || a == Kind::kKernelStack || a == Kind::kUserStack;
    if (is_composite && (left == right || unify(facts_.types(), left, right))) return facts_.types().bool_type();
  }
  return bad_operands(node, left, right);
}

TypeId BinaryOperators::arithmetic(const Binary& node, TypeId left, TypeId right) {
  const TypeId found = result_type(node.op, left, right, node.left, node.right);
  if (!found) return bad_operands(node, left, right);
  const bool divides = node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo;
  if (divides && facts_.integer(node.right) == 0)
    reporter_.error("bad-constant", facts_.span(node.right), "this divides by zero");
  adapt_literal(node.left, right);
  adapt_literal(node.right, left);
  return found;
}

TypeId BinaryOperators::result_type(BinaryOp op, TypeId left, TypeId right, ExprId left_expr, ExprId right_expr) {
  const bool left_pointer = facts_.type_of(left).kind == Kind::kPointer;
  const bool right_pointer = facts_.type_of(right).kind == Kind::kPointer;
  if (left_pointer && right_pointer) return op == BinaryOp::kSubtract ? facts_.types().int64() : TypeId{};
  if (left_pointer || right_pointer) {
    if (!is_int_like(facts_.type_of(left_pointer ? right : left))) return {};
    if (op == BinaryOp::kAdd) return left_pointer ? left : right;
    if (op == BinaryOp::kSubtract) return left_pointer ? left : TypeId{};
    return facts_.types().uint64();  // the address, masked or shifted
  }
  if (!is_int_like(facts_.type_of(left)) || !is_int_like(facts_.type_of(right))) return {};
  if (op == BinaryOp::kSubtract) return facts_.types().int64();
  const bool is_shift = op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight;
  const auto is_signed = [&](TypeId t) { return facts_.type_of(t).kind != Kind::kBool && facts_.type_of(t).is_signed; };
  if (is_shift) return facts_.types().int_type(8, is_signed(left));
  if (adapts_to_other(right_expr)) return facts_.types().int_type(8, is_signed(left));
  if (adapts_to_other(left_expr)) return facts_.types().int_type(8, is_signed(right));
  return facts_.types().int_type(8, is_signed(left) || is_signed(right));
}

// A literal that is not negative takes the sign of the other operand.
bool BinaryOperators::adapts_to_other(ExprId literal) const {
  if (!literal || !facts_.is_number_literal(literal)) return false;
  const auto known = facts_.number(literal);
  return known && (known->is_unsigned || known->bits >= 0);
}

void BinaryOperators::adapt_literal(ExprId literal, TypeId other) {
  if (!other || facts_.type_of(other).kind != Kind::kInt || !adapts_to_other(literal)) return;
  if (!facts_.type_of(other).is_signed && fits(facts_.type_of(other), facts_.number(literal)->bits, true))
    facts_.fact(literal).type = other;
}

TypeId BinaryOperators::bad_operands(const Binary& node, TypeId left, TypeId right) {
  reporter_.error(
      "bad-operands", node.op_span,
      std::string("`") + spelling(node.op) + "` does not work on " + facts_.show(left) + " and " + facts_.show(right));
  return {};
}

}  // namespace espy::check
