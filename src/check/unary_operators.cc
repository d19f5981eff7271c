#include "check/unary_operators.h"

#include "check/fold_constants.h"
#include "check/type_rules.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

TypeId UnaryOperators::unary(ExprId id, const Unary& node) {
  switch (node.op) {
    case UnaryOp::kPreIncrement:
    case UnaryOp::kPreDecrement:
    case UnaryOp::kPostIncrement:
    case UnaryOp::kPostDecrement: return increment(id, node);
    case UnaryOp::kDereference: return dereference(id, node);
    case UnaryOp::kAddressOf: return address_of(id, node);
    default: break;
  }
  const TypeId operand = expressions_.read_value(node.operand);
  if (!operand) return {};
  const bool is_not = node.op == UnaryOp::kNot;
  const bool is_number = is_int_like(facts_.type_of(operand)) || facts_.type_of(operand).kind == Kind::kPointer;
  if (is_not ? !is_truthy(facts_.type_of(operand)) : !is_number) return bad_operand(id, node, operand);
  if (const auto known = facts_.number(node.operand); known && (is_not || facts_.is_number_literal(node.operand))) {
    const auto folded = fold_unary(node.op, *known);
    if (!folded) {
      reporter_.error("bad-constant", facts_.span(id), "unable to fold literals due to overflow or underflow");
      return {};
    }
    if (is_not) {
      facts_.fact(id).constant = folded->bits;
      return facts_.types().bool_type();
    }
    return facts_.set_number(id, *folded);
  }
  if (is_not) return facts_.types().bool_type();
  if (node.op == UnaryOp::kNegate) return facts_.types().int64();
  return facts_.types().int_type(8, facts_.type_of(operand).kind != Kind::kBool && facts_.type_of(operand).is_signed);
}

TypeId UnaryOperators::bad_operand(ExprId id, const Unary& node, TypeId operand) {
  reporter_.error("bad-operands", facts_.span(id),
                  std::string("`") + spelling(node.op) + "` does not work on " + facts_.show(operand));
  return {};
}

// The type that holds the result of ++ or --; invalid if `old` cannot be counted.
TypeId UnaryOperators::incremented_type(const Unary& node, TypeId old) {
  const bool is_decrement = node.op == UnaryOp::kPreDecrement || node.op == UnaryOp::kPostDecrement;
  if (!old) return facts_.types().int64();
  const types::Type& type = facts_.type_of(old);
  if (type.kind == Kind::kPointer) return old;
  return type.kind == Kind::kInt ? facts_.types().int_type(8, is_decrement || type.is_signed) : TypeId{};
}

TypeId UnaryOperators::increment(ExprId id, const Unary& node) {
  if (facts_.ast().get<syntax::Variable>(node.operand)) return increment_variable(id, node);
  MapState* state = map_expressions_.target(node.operand);
  if (!state) {
    if (!facts_.ast().get<ErrorExpr>(node.operand))
      reporter_.error("not-assignable", facts_.span(node.operand),
                      "only variables and maps can be incremented or decremented");
    return {};
  }
  map_expressions_.refuse_unknown_names(*state, node.operand);
  const TypeId next = incremented_type(node, state->value.type);
  if (!next) return bad_operand(id, node, state->value.type);
  maps_.add_type(*state, next, {}, false, facts_.span(id));
  return facts_.fact(node.operand).type = state->value.type;
}

TypeId UnaryOperators::increment_variable(ExprId id, const Unary& node) {
  const TypeId old = expressions_.expr(node.operand);
  if (!old) return {};
  const VariableId variable = facts_.fact(node.operand).variable;
  const TypeId next = incremented_type(node, old);
  if (!next) return bad_operand(id, node, old);
  if (!variables_.state(variable).slot.is_declared) variables_.add(variable, next, {}, false, facts_.span(id));
  return facts_.fact(node.operand).type = variables_.type(variable);
}

TypeId UnaryOperators::dereference(ExprId id, const Unary& node) {
  const TypeId pointer = expressions_.value(node.operand);
  if (!pointer) return {};
  const types::Type& t = facts_.type_of(pointer);
  if (t.kind == Kind::kInt && t.size_bytes == 8) return facts_.types().uint64();
  if (t.kind != Kind::kPointer) {
    reporter_.error("not-a-pointer", facts_.span(id),
                    "only pointers can be dereferenced, and this is " + facts_.show(pointer));
    return {};
  }
  const TypeId element = t.element;
  // `*kptr(address)`: a word.
  if (facts_.type_of(element).kind == Kind::kVoid && facts_.fact(node.operand).builtin) return facts_.types().uint64();
  if (facts_.type_of(element).kind == Kind::kVoid) {
    reporter_.error("not-a-pointer", facts_.span(id), "a `void *` must be cast before it is dereferenced",
                    "write `*(uint64 *)...`");
    return {};
  }
  return members_.loaded_type(t.space, element);
}

TypeId UnaryOperators::address_of(ExprId id, const Unary& node) {
  const TypeId operand = expressions_.value(node.operand);
  if (!operand) return {};
  if (facts_.fact(node.operand).map.valid() || facts_.fact(node.operand).variable.valid())
    return facts_.types().pointer(operand, types::AddressSpace::kBpf);
  // A member, at any depth, of what a pointer points to.
  for (const auto* access = facts_.ast().get<Access>(node.operand); access;
       access = facts_.ast().get<Access>(access->base)) {
    const TypeId base = facts_.type(access->base);
    if (base && facts_.type_of(base).kind == Kind::kPointer)
      return facts_.types().pointer(operand, facts_.type_of(base).space);
  }
  reporter_.error("no-address", facts_.span(id), "this has no address",
                  "`&` works on variables, maps and members behind a pointer");
  return {};
}

}  // namespace espy::check
