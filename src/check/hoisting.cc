#include "check/hoisting.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "check/walk.h"

namespace espy::check {

using namespace syntax;

namespace {

using Assigned = std::map<std::string_view, ExprId>;  // by name: the first assignment's target

const If* if_statement(const Ast& ast, StmtId id) {
  const auto* statement = std::get_if<ExprStmt>(&ast[id].node);
  return statement ? ast.get<If>(statement->value) : nullptr;
}

// `$x = ...`, not `$x += ...`.
const syntax::Variable* plain_target(const Ast& ast, StmtId id) {
  const auto* assign = std::get_if<Assign>(&ast[id].node);
  return assign && !assign->op ? ast.get<syntax::Variable>(assign->target) : nullptr;
}

Assigned assigned_by(const Ast& ast, const If& node);

// Variables assigned on every path through the branch.
Assigned assigned_by(const Ast& ast, ExprId branch) {
  if (!branch) return {};
  if (const auto* other = ast.get<If>(branch)) return assigned_by(ast, *other);
  const auto* block = ast.get<Block>(branch);
  Assigned out;
  if (!block) return out;
  for (const StmtId id : block->statements) {
    if (const syntax::Variable* target = plain_target(ast, id))
      out.emplace(target->name, std::get<Assign>(ast[id].node).target);
    if (const If* inner = if_statement(ast, id)) out.merge(assigned_by(ast, *inner));
  }
  return out;
}

Assigned assigned_by(const Ast& ast, const If& node) {
  if (node.is_comptime) return {};
  Assigned out = assigned_by(ast, node.then_branch);
  const Assigned otherwise = assigned_by(ast, node.else_branch);
  std::erase_if(out, [&](const auto& entry) { return !otherwise.contains(entry.first); });
  return out;
}

// True if the first use of the variable from statement `index` on reads it.
bool is_read_first(const Ast& ast, const Block& block, size_t index, std::string_view name) {
  bool is_read = false;
  const auto look = [&](ExprId id) {
    const auto* variable = ast.get<syntax::Variable>(id);
    is_read |= variable && variable->name == name;
  };
  for (; index < block.statements.size() && !is_read; ++index) {
    const StmtId id = block.statements[index];
    const syntax::Variable* target = plain_target(ast, id);
    if (target && target->name == name) {
      walk(ast, std::get<Assign>(ast[id].node).value, look);
      return is_read;
    }
    walk(ast, id, look);
  }
  if (block.value && !is_read) walk(ast, block.value, look);
  return is_read;
}

}  // namespace

std::vector<ExprId> variables_to_hoist(const Ast& ast, const Block& block, size_t index) {
  std::vector<ExprId> out;
  const If* node = if_statement(ast, block.statements[index]);
  if (!node || !node->else_branch) return out;
  for (const auto& [name, target] : assigned_by(ast, *node))
    if (is_read_first(ast, block, index + 1, name)) out.push_back(target);
  return out;
}

}  // namespace espy::check
