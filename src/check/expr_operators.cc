// Operators: unary, binary, and how the types of operands meet.
#include <algorithm>

#include "check/analyzer.h"
#include "program/probe_names.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

TypeId Analyzer::visit(ExprId id, const Unary& node) {
  switch (node.op) {
    case UnaryOp::kPreIncrement:
    case UnaryOp::kPreDecrement:
    case UnaryOp::kPostIncrement:
    case UnaryOp::kPostDecrement: return increment(id, node);
    case UnaryOp::kDereference: return dereference(id, node);
    case UnaryOp::kAddressOf: return address_of(id, node);
    default: break;
  }
  value(node.operand);
  read_aggregation(node.operand);
  const TypeId operand = type(node.operand);
  if (!operand) return {};
  const bool is_not = node.op == UnaryOp::kNot;
  if (is_not ? !is_truthy(type_of(operand)) : !is_int_like(type_of(operand))) {
    error("bad-operands", span(id), std::string("`") + spelling(node.op) + "` does not work on " + show(operand));
    return {};
  }
  if (const auto known = number_of(node.operand); known && (is_not || is_number_literal(node.operand))) {
    const auto folded = fold_unary(node.op, *known);
    if (!folded) {
      error("bad-constant", span(id), "unable to fold literals due to overflow or underflow");
      return {};
    }
    if (is_not) {
      fact(id).constant = folded->bits;
      return types().bool_type();
    }
    return integer_constant(id, *folded);
  }
  if (is_not) return types().bool_type();
  if (node.op == UnaryOp::kNegate) return types().int64();
  return types().int_type(8, type_of(operand).kind != Kind::kBool && type_of(operand).is_signed);
}

TypeId Analyzer::increment(ExprId id, const Unary& node) {
  const bool down = node.op == UnaryOp::kPreDecrement || node.op == UnaryOp::kPostDecrement;
  const auto widened = [&](TypeId old) -> TypeId {
    if (!old) return types().int64();
    const types::Type& t = type_of(old);
    if (t.kind == Kind::kPointer) return old;
    if (t.kind != Kind::kInt) return {};
    const bool is_signed = down || t.is_signed;
    return types().int_type(8, is_signed);
  };
  if (ast().get<syntax::Variable>(node.operand)) {
    const TypeId old = expr(node.operand);
    if (!old) return {};
    const VariableId variable = fact(node.operand).variable;
    const TypeId next = widened(old);
    if (!next) {
      error("bad-operands", span(id), std::string("`") + spelling(node.op) + "` does not work on " + show(old));
      return {};
    }
    if (!variables_[unit_index_][variable.index].slot.is_declared) add_to_variable(variable, next, {}, false, span(id));
    return fact(node.operand).type = unit_->variables[variable].type;
  }
  MapState* state = map_target(node.operand);
  if (!state) {
    if (!ast().get<ErrorExpr>(node.operand))
      error("not-assignable", span(node.operand), "only variables and maps can be counted up or down");
    return {};
  }
  refuse_unknown_names(*state, node.operand);
  const TypeId next = widened(state->value.type);
  if (!next) {
    error("bad-operands", span(id),
          std::string("`") + spelling(node.op) + "` does not work on " + show(state->value.type));
    return {};
  }
  add_type_to_map(*state, next, {}, false, span(id));
  return fact(node.operand).type = state->value.type;
}

TypeId Analyzer::dereference(ExprId id, const Unary& node) {
  const TypeId pointer = value(node.operand);
  if (!pointer) return {};
  const types::Type& t = type_of(pointer);
  if (t.kind == Kind::kInt && t.size_bytes == 8) return types().uint64();
  if (t.kind != Kind::kPointer) {
    error("not-a-pointer", span(id), "only pointers can be followed, and this is " + show(pointer));
    return {};
  }
  const TypeId element = t.element;
  if (type_of(element).kind == Kind::kVoid) {
    error("not-a-pointer", span(id), "a `void *` must be cast before it is followed", "write `*(uint64 *)...`");
    return {};
  }
  return seen_from(t.space, element);
}

TypeId Analyzer::address_of(ExprId id, const Unary& node) {
  const TypeId operand = value(node.operand);
  if (!operand) return {};
  if (fact(node.operand).map.valid() || fact(node.operand).variable.valid())
    return types().pointer(operand, types::AddressSpace::kBpf);
  // A member of a member of ... what a pointer points to.
  for (const auto* access = ast().get<Access>(node.operand); access; access = ast().get<Access>(access->base)) {
    const TypeId base = type(access->base);
    if (base && type_of(base).kind == Kind::kPointer) return types().pointer(operand, type_of(base).space);
  }
  error("no-address", span(id), "this has no address", "`&` works on variables, maps and members behind a pointer");
  return {};
}

void Analyzer::adapt_literal(ExprId literal, TypeId other) {
  if (!literal || !other || !is_number_literal(literal) || type_of(other).kind != Kind::kInt) return;
  const auto known = number_of(literal);
  if (!known || (!known->is_unsigned && known->bits < 0)) return;
  if (!type_of(other).is_signed && fits(type_of(other), known->bits, true)) fact(literal).type = other;
}

// Literals are numbers and compute exactly. One that was cast computes as variables of its type do: that is left to the
// optimiser, which knows the CPU's arithmetic. So are truth values.
bool Analyzer::is_number_literal(ExprId constant) {
  return is_literal(constant) && type_of(type(constant)).kind == Kind::kInt && !has_cast(constant);
}

bool Analyzer::has_cast(ExprId id) {
  if (const auto* unary = ast().get<Unary>(id)) return has_cast(unary->operand);
  if (const auto* binary = ast().get<Binary>(id)) return has_cast(binary->left) || has_cast(binary->right);
  if (const auto* choice = ast().get<Ternary>(id))
    return has_cast(choice->then_value.valid() ? choice->then_value : choice->condition) ||
           has_cast(choice->else_value);
  if (const auto* comptime = ast().get<syntax::Comptime>(id)) return has_cast(comptime->operand);
  return ast().get<syntax::Cast>(id) != nullptr;
}

std::optional<TypeId> Analyzer::fold_operands(ExprId id, const Binary& node) {
  const auto a = number_of(node.left);
  const auto b = number_of(node.right);
  // Where neither is negative, the order is the same in every arithmetic.
  const auto is_natural = [](Number n) { return n.is_unsigned || n.bits >= 0; };
  const bool compares = a && b && is_comparison(node.op) && is_natural(*a) && is_natural(*b);
  if (a && b && (is_logical(node.op) || compares || (is_number_literal(node.left) && is_number_literal(node.right)))) {
    const auto folded = fold_binary(node.op, *a, *b);
    if (!folded) {
      error("bad-constant", span(id), "unable to fold literals due to overflow or underflow");
      return TypeId{};
    }
    if (is_comparison(node.op) || is_logical(node.op)) {
      fact(id).constant = folded->bits;
      return types().bool_type();
    }
    return integer_constant(id, *folded);
  }
  const auto left = text(node.left);
  const auto right = text(node.right);
  if (left && right && is_comparison(node.op)) {
    const int order = left->compare(*right);
    const auto folded = fold_binary(node.op, {order}, {0});
    fact(id).constant = folded->bits;
    return types().bool_type();
  }
  return std::nullopt;
}

TypeId Analyzer::visit(ExprId id, const Binary& node) {
  value(node.left);
  read_aggregation(node.left);
  value(node.right);
  read_aggregation(node.right);
  const TypeId left = type(node.left);
  const TypeId right = type(node.right);
  if (!left || !right) return {};
  if (const auto folded = fold_operands(id, node)) return *folded;
  if (is_logical(node.op)) {
    for (const ExprId side : {node.left, node.right})
      if (!is_truthy(type_of(type(side))))
        error("not-a-condition", span(side),
              "a condition must be an integer, a pointer or a string, not " + show(type(side)));
    const auto known = integer(node.left);
    if (known && (*known != 0) == (node.op == BinaryOp::kLogicalOr)) fact(id).constant = int64_t{*known != 0};
    return types().bool_type();
  }
  if (is_comparison(node.op)) return comparison(id, node, left, right);
  return arithmetic(id, node, left, right);
}

TypeId Analyzer::bad_operands(const Binary& node, TypeId left, TypeId right) {
  error("bad-operands", node.op_span,
        std::string("`") + spelling(node.op) + "` does not work on " + show(left) + " and " + show(right));
  return {};
}

TypeId Analyzer::comparison(ExprId, const Binary& node, TypeId left, TypeId right) {
  const Kind a = type_of(left).kind;
  const Kind b = type_of(right).kind;
  const bool is_equality = node.op == BinaryOp::kEqual || node.op == BinaryOp::kNotEqual;
  const bool a_scalar = is_int_like(type_of(left)) || a == Kind::kPointer;
  const bool b_scalar = is_int_like(type_of(right)) || b == Kind::kPointer;
  if (a_scalar && b_scalar) {
    adapt_literal(node.left, right);
    adapt_literal(node.right, left);
    return types().bool_type();
  }
  // Symbols and the like are numbers that are shown in their own way.
  const auto is_number_like = [](Kind kind) {
    return kind == Kind::kKernelSymbol || kind == Kind::kCgroupPath || kind == Kind::kUsername;
  };
  if ((is_number_like(a) && (b_scalar || a == b)) || (is_number_like(b) && a_scalar)) return types().bool_type();
  if (a == Kind::kString && b == Kind::kString) return types().bool_type();
  if (is_equality &&
      ((program::is_probe_name(a) && text(node.right)) || (program::is_probe_name(b) && text(node.left))))
    return types().bool_type();
  if (is_equality && a == b) {
    if (a == Kind::kBuffer || program::is_probe_name(a)) return types().bool_type();
    const bool is_composite = a == Kind::kTuple || a == Kind::kRecord || a == Kind::kArray || a == Kind::kInet ||
                              a == Kind::kMac || a == Kind::kKernelStack || a == Kind::kUserStack;
    if (is_composite && (left == right || unify(types(), left, right))) return types().bool_type();
  }
  return bad_operands(node, left, right);
}

TypeId Analyzer::arithmetic(ExprId, const Binary& node, TypeId left, TypeId right) {
  const TypeId found = binary_type(node.op, left, right, node.left, node.right);
  if (!found) return bad_operands(node, left, right);
  const bool divides = node.op == BinaryOp::kDivide || node.op == BinaryOp::kModulo;
  if (divides && integer(node.right) == 0) error("bad-constant", span(node.right), "this divides by zero");
  adapt_literal(node.left, right);
  adapt_literal(node.right, left);
  return found;
}

TypeId Analyzer::binary_type(BinaryOp op, TypeId left, TypeId right, ExprId left_expr, ExprId right_expr) {
  const bool left_pointer = type_of(left).kind == Kind::kPointer;
  const bool right_pointer = type_of(right).kind == Kind::kPointer;
  if (left_pointer && right_pointer) return op == BinaryOp::kSubtract ? types().int64() : TypeId{};
  if (left_pointer || right_pointer) {
    if (!is_int_like(type_of(left_pointer ? right : left))) return {};
    if (op == BinaryOp::kAdd) return left_pointer ? left : right;
    if (op == BinaryOp::kSubtract) return left_pointer ? left : TypeId{};
    return types().uint64();  // masks and shifts look at the address
  }
  if (!is_int_like(type_of(left)) || !is_int_like(type_of(right))) return {};
  if (op == BinaryOp::kSubtract) return types().int64();
  const bool is_shift = op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight;
  const auto is_signed = [&](TypeId t) { return type_of(t).kind != Kind::kBool && type_of(t).is_signed; };
  if (is_shift) return types().int_type(8, is_signed(left));
  // A literal that is not negative takes the other side's sign.
  const auto adapts = [&](ExprId e) {
    if (!e || !is_number_literal(e)) return false;
    const auto known = number_of(e);
    return known && (known->is_unsigned || known->bits >= 0);
  };
  bool result_signed = is_signed(left) || is_signed(right);
  if (adapts(right_expr))
    result_signed = is_signed(left);
  else if (adapts(left_expr))
    result_signed = is_signed(right);
  return types().int_type(8, result_signed);
}

}  // namespace espy::check
