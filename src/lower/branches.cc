#include "lower/branches.h"

#include "lower/expressions.h"
#include "lower/statements.h"

namespace espy::lower {

using syntax::BinaryOp;

ValueId Branches::truth(Operand operand) {
  if (!operand.value.valid()) return ir().constant(0);
  if (!operand.is_address) return operand.value;
  operand = conversions_.in_our_memory(operand);
  if (types::is_aggregation(types()[operand.type])) return conversions_.reduce(operand, types().int64()).value;
  return ir().load(1, operand.value);  // a string is true unless it is empty
}

void Branches::branch_on(ExprId condition, BlockId if_true, BlockId if_false) {
  const bool is_known = scope_.is_constant(condition);
  const auto* logic = is_known ? nullptr : ast().get<syntax::Binary>(condition);
  const auto* negation = is_known ? nullptr : ast().get<syntax::Unary>(condition);
  if (logic && (logic->op == BinaryOp::kLogicalAnd || logic->op == BinaryOp::kLogicalOr)) {
    const bool is_and = logic->op == BinaryOp::kLogicalAnd;
    const BlockId second = ir().add_block(is_and ? "and" : "or");
    branch_on(logic->left, is_and ? second : if_true, is_and ? if_false : second);
    ir().enter(second);
    branch_on(logic->right, if_true, if_false);
  } else if (negation && negation->op == syntax::UnaryOp::kNot) {
    branch_on(negation->operand, if_false, if_true);
  } else {
    ir().branch(Condition::ne, truth(laundering_.opaque_copy(expressions_.value(condition))), 0, if_true, if_false);
  }
}

Operand Branches::logical(ExprId expr) {
  const TypeId type = scope_.type(expr);
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
  return {type, merged_value(type, slot)};
}

void Branches::assign_result(ir::SlotId result, TypeId type, ExprId expr) {
  if (!expr.valid()) return;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return statements_.discard(expr);
  Operand operand = expressions_.value(expr);
  if (!operand.value.valid()) return write_slot(result, ir().constant(0));
  if (!is_scalar(type)) operand = conversions_.aligned(operand);
  write_slot(result, conversions_.convert(operand, type).value);
}

Operand Branches::either(TypeId type, ExprId condition, ExprId if_true, ExprId if_false) {
  const ir::SlotId result = new_slot("value");
  const BlockId yes = ir().add_block("then");
  const BlockId no = ir().add_block("else");
  const BlockId join = ir().add_block("join");
  branch_on(condition, yes, no);
  ir().enter(yes);
  assign_result(result, type, if_true);
  ir().jump(join);
  ir().enter(no);
  assign_result(result, type, if_false);
  ir().jump(join);
  ir().enter(join);
  if (!type.valid() || types()[type].kind == Kind::kVoid) return {};
  return {type, merged_value(type, result), !is_scalar(type)};
}

// The value that one of two branches has written. In a loop, the verifier would follow the bounds of each branch, and
// the combinations of several such values multiply.
ValueId Branches::merged_value(TypeId type, ir::SlotId result) {
  const ValueId value = read_slot(result);
  return laundering_.is_in_converging_loop() && types::is_integer(types()[type]) ? laundering_.launder(value) : value;
}

Operand Branches::value_of_branch(TypeId type, ExprId branch) {
  if (!branch.valid()) return {};
  const Operand value = expressions_.value(branch);
  return value.value.valid() ? conversions_.convert(value, type) : Operand{};
}

Operand Branches::ternary(ExprId expr, const syntax::Ternary& node) {
  const TypeId type = scope_.type(expr);
  const ExprId then_value = node.then_value.valid() ? node.then_value : node.condition;
  if (const auto is_true = scope_.fact(expr).branch_taken)
    return value_of_branch(type, *is_true ? then_value : node.else_value);
  if (node.then_value.valid()) return either(type, node.condition, node.then_value, node.else_value);
  const Operand first = expressions_.value(node.condition);  // a ?: b
  const ir::SlotId result = new_slot("value");
  when(
      Condition::ne, truth(first), ir().constant(0),
      [&] { write_slot(result, conversions_.convert(conversions_.aligned(first), type).value); },
      [&] { assign_result(result, type, node.else_value); });
  return {type, merged_value(type, result), !is_scalar(type)};
}

Operand Branches::if_value(ExprId expr, const syntax::If& node) {
  const TypeId type = scope_.type(expr);
  const auto is_true = scope_.fact(expr).branch_taken;
  if (!is_true) return either(type, node.condition, node.then_branch, node.else_branch);
  return value_of_branch(type, *is_true ? node.then_branch : node.else_branch);
}

}  // namespace espy::lower
