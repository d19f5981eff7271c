#include "check/blocks.h"

#include "check/hoisting.h"
#include "check/type_rules.h"
#include "check/walk.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

TypeId Blocks::block(ExprId id, const Block& node) {
  variables_.enter_scope();
  bool ended = false;
  for (size_t i = 0; i < node.statements.size(); ++i) {
    const StmtId statement = node.statements[i];
    if (ended) {
      reporter_.warning("unreachable", facts_.ast()[statement].span, "this is never reached");
      ended = false;
    }
    facts_.unit().stmts[statement].hoisted.clear();
    for (const ExprId target : variables_to_hoist(facts_.ast(), node, i)) {
      const std::string& name = facts_.ast().get<syntax::Variable>(target)->name;
      if (!variables_.find(name)) facts_.unit().stmts[statement].hoisted.push_back(variables_.declare_at(target, name));
    }
    statements_.statement(statement);
    ended = leaves(statement);
  }
  TypeId found = facts_.types().void_type();
  if (node.value) {
    if (ended) reporter_.warning("unreachable", facts_.span(node.value), "this is never reached");
    expressions_.expr(node.value);
    expressions_.read_aggregation(node.value);
    found = facts_.type(node.value);
    // The block that a call of a macro expands to may be a constant.
    if (node.statements.empty()) facts_.fact(id).constant = facts_.constant(node.value);
  }
  variables_.leave_block();
  return found;
}

// True if nothing after the statement is reached.
bool Blocks::leaves(StmtId id) {
  const StmtNode& what = facts_.ast()[id].node;
  if (std::holds_alternative<Break>(what) || std::holds_alternative<Continue>(what) ||
      std::holds_alternative<Return>(what))
    return true;
  const auto* statement = std::get_if<ExprStmt>(&what);
  return statement != nullptr && leaves(statement->value);
}

bool Blocks::leaves(ExprId id) {
  if (!id) return false;
  const spec::Builtin* builtin = facts_.fact(id).builtin;
  if (facts_.ast().get<Call>(id)) return builtin != nullptr && builtin->ends_action;
  if (const auto* block = facts_.ast().get<Block>(id))
    return !block->statements.empty() && leaves(block->statements.back());
  const auto* branches = facts_.ast().get<If>(id);
  return branches != nullptr && !facts_.fact(id).branch_taken && leaves(branches->then_branch) &&
         leaves(branches->else_branch);
}

// Whether the condition is true, if that is known.
std::optional<bool> Blocks::known_branch(ExprId id, ExprId condition) {
  expressions_.condition(condition);
  const auto known = facts_.integer(condition);
  return facts_.fact(id).branch_taken = known ? std::optional(*known != 0) : std::nullopt;
}

void Blocks::leave_out(ExprId branch) {
  if (!branch) return;
  has_left_out_ = true;
  if (checks_all_) expressions_.expr(branch);
}

namespace {

// Whether finding out the type of the expression has no other effect.
bool is_plain(const Ast& ast, ExprId id) {
  if (const auto* block = ast.get<Block>(id))
    return block->statements.empty() && block->value && is_plain(ast, block->value);
  bool out = true;
  walk(ast, id, [&](ExprId each) {
    const ExprNode& node = ast[each].node;
    const auto* unary = std::get_if<Unary>(&node);
    out &= std::holds_alternative<IntegerLiteral>(node) || std::holds_alternative<BoolLiteral>(node) ||
           std::holds_alternative<syntax::Variable>(node) || std::holds_alternative<Name>(node) ||
           std::holds_alternative<Positional>(node) || std::holds_alternative<PositionalCount>(node) ||
           std::holds_alternative<Cast>(node) || std::holds_alternative<Binary>(node) ||
           std::holds_alternative<Ternary>(node) || (unary && unary->op < UnaryOp::kPreIncrement);
  });
  return out;
}

}  // namespace

// If a branch that is left out is an integer, calls `look` with its type. Skips branches whose check has effects.
// `look` may ask for the facts of the branch.
void Blocks::with_left_out(ExprId branch, const std::function<void(TypeId)>& look) {
  if (!branch || !is_plain(facts_.ast(), branch)) return;
  reporter_.mute(true);
  const TypeId type = expressions_.expr(branch);
  reporter_.mute(false);
  if (type && types::is_integer(facts_.type_of(type))) look(type);
  walk(facts_.ast(), branch, [&](ExprId each) { facts_.fact(each) = {}; });
}

TypeId Blocks::branch(ExprId id, const If& node) {
  if (const auto known = known_branch(id, node.condition)) {
    const ExprId taken = *known ? node.then_branch : node.else_branch;
    const ExprId left_out = *known ? node.else_branch : node.then_branch;
    if (!node.is_comptime) leave_out(left_out);
    if (!taken) return facts_.types().void_type();
    TypeId out = expressions_.expr(taken);
    if (node.is_comptime || !out || !types::is_integer(facts_.type_of(out))) return out;
    with_left_out(left_out, [&](TypeId other) { out = unify(facts_.types(), out, other).value_or(out); });
    return out;
  }
  if (node.is_comptime) {
    if (facts_.type(node.condition))
      reporter_.error("not-constant", facts_.span(node.condition), "this is not known at compile time");
    return {};
  }
  const TypeId a = expressions_.expr(node.then_branch);
  const TypeId b = node.else_branch ? expressions_.expr(node.else_branch) : facts_.types().void_type();
  const TypeId void_type = facts_.types().void_type();
  if (!a || !b) return {};
  if (a == void_type || b == void_type) return void_type;
  const auto both = unify(facts_.types(), a, b);
  return both ? *both : void_type;
}

TypeId Blocks::ternary(ExprId id, const Ternary& node) {
  const auto known = known_branch(id, node.condition);
  const ExprId then_value = node.then_value ? node.then_value : node.condition;
  const auto side = [&](ExprId value) {
    if (value == node.condition) return;
    expressions_.expr(value);
    expressions_.read_aggregation(value);
  };
  if (known) {
    const ExprId taken = *known ? then_value : node.else_value;
    const ExprId left_out = *known ? node.else_value : then_value;
    if (left_out != node.condition) leave_out(left_out);
    side(taken);
    facts_.fact(id).constant = facts_.constant(taken);
    TypeId out = facts_.type(taken);
    if (!out || !types::is_integer(facts_.type_of(out))) return out;
    with_left_out(left_out, [&](TypeId) { out = common_type(id, taken, left_out); });
    return out;
  }
  side(then_value);
  side(node.else_value);
  return common_type(id, then_value, node.else_value);
}

TypeId Blocks::common_type(ExprId id, ExprId a, ExprId b) {
  const TypeId left = facts_.type(a);
  const TypeId right = facts_.type(b);
  if (!left || !right) return {};
  Slot slot;
  if (slot.add(facts_.types(), left, facts_.constant(a), facts_.is_number_literal(a)) &&
      slot.add(facts_.types(), right, facts_.constant(b), facts_.is_number_literal(b)))
    return slot.type;
  if (facts_.type_of(left).kind == Kind::kVoid && facts_.type_of(right).kind == Kind::kVoid) return left;
  reporter_.error(
      "type-mismatch", facts_.span(id),
      "the two sides are " + facts_.show(left) + " and " + facts_.show(right) + ", which have no common type");
  return {};
}

}  // namespace espy::check
