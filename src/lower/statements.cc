#include "lower/statements.h"

#include "lower/access.h"
#include "lower/branches.h"
#include "lower/expressions.h"
#include "lower/loops.h"
#include "lower/maps.h"
#include "lower/operators.h"
#include "lower/overloaded.h"

namespace espy::lower {

void Statements::lower(const std::vector<StmtId>& statements) {
  for (const StmtId each : statements) lower(each);
}

void Statements::lower(StmtId id) {
  ir().at(ast()[id].span);
  for (const VariableId variable : scope_.fact(id).hoisted) variables_.clear(variable);
  std::visit(Overloaded{
                 [&](const syntax::ExprStmt& node) { discard(node.value); },
                 [&](const syntax::Discard& node) { discard(node.value); },
                 [&](const syntax::Assign& node) { assign(node); },
                 [&](const syntax::Let& node) { let(id, node); },
                 [&](const syntax::While& node) { loops_.loop_while(node); },
                 [&](const syntax::Unroll& node) { loops_.unroll(node); },
                 [&](const syntax::ForMap& node) { loops_.for_map(id, node); },
                 [&](const syntax::ForRange& node) { loops_.for_range(id, node); },
                 [&](const syntax::Break&) { loops_.leave(true); },
                 [&](const syntax::Continue&) { loops_.leave(false); },
                 [&](const syntax::Return& node) { return_from(node); },
             },
             ast()[id].node);
}

void Statements::discard(ExprId expr) {
  ir().at(ast()[expr].span);
  if (const ExprId replacement = scope_.fact(expr).replacement; replacement.valid()) return discard(replacement);
  if (const auto* block = ast().get<syntax::Block>(expr)) {
    lower(block->statements);
    if (block->value.valid()) discard(block->value);
  } else if (const auto* branch = ast().get<syntax::If>(expr)) {
    discard_if(expr, *branch);
  } else if (const auto* unary = ast().get<syntax::Unary>(expr); unary && unary->op >= syntax::UnaryOp::kPreIncrement) {
    operators_.step(expr, *unary, false);
  } else {
    expressions_.value(expr);
  }
}

void Statements::discard_if(ExprId expr, const syntax::If& node) {
  if (const auto is_true = scope_.fact(expr).branch_taken) {
    const ExprId taken = *is_true ? node.then_branch : node.else_branch;
    if (taken.valid()) discard(taken);
    return;
  }
  const BlockId then = ir().add_block("then");
  const BlockId join = ir().add_block("join");
  const BlockId otherwise = node.else_branch.valid() ? ir().add_block("else") : join;
  branches_.branch_on(node.condition, then, otherwise);
  ir().enter(then);
  discard(node.then_branch);
  ir().jump(join);
  if (node.else_branch.valid()) {
    ir().enter(otherwise);
    discard(node.else_branch);
    ir().jump(join);
  }
  ir().enter(join);
}

// ---- Assignment

void Statements::let(StmtId id, const syntax::Let& node) {
  const VariableId variable = scope_.fact(id).variable;
  if (!variable.valid()) return;
  if (!node.value.valid()) return variables_.clear(variable);
  variables_.write(variable, expressions_.value(node.value));
}

void Statements::assign(const syntax::Assign& node) {
  const check::ExprFact& target = scope_.fact(node.target);
  if (node.op) return operators_.assign(node);
  if (target.variable.valid() && ast().get<syntax::Variable>(node.target))
    return variables_.write(target.variable, expressions_.value(node.value));
  if (target.map.valid()) return maps_.assign(node.target, node.value);
  const Operand operand = expressions_.value(node.value);
  const Operand to = access_.location(node.target);
  if (to.is_address && to.space == AddressSpace::kBpf) conversions_.store_converted(to.value, operand, to.type);
}

// ---- Return

void Statements::return_from(const syntax::Return& node) {
  const bool has_result = scope_.unit().function || scope_.unit().context.returns_value;
  if (node.value.valid() && has_result) {
    store_result(node.value);
  } else if (node.value.valid()) {
    discard(node.value);
  }
  exits_.end_function();
}

void Statements::store_result(ExprId value) {
  const Activation& activation = scope_.activation();
  const bool is_function = scope_.unit().function != nullptr;
  const TypeId type = is_function ? scope_.unit().result : types().int64();
  Operand result = conversions_.convert(expressions_.value(value), type);
  if (result.is_address) {
    const ValueId copy = memory_.allocate(types()[type].size_bytes, {});
    conversions_.store(copy, result);
    result.value = copy;
  }
  if (activation.result_offset) {
    ir().store(8, frame_.address(), result.value, activation.result_offset);
  } else if (!functions_.is_in_callback() || is_function) {
    write_slot(activation.result, result.value);
  }
}

}  // namespace espy::lower
