#include "check/assigned_blocks.h"

#include <utility>

namespace espy::check {

using namespace syntax;

namespace {

bool is_map_element(const Ast& ast, ExprId target) {
  const auto* index = ast.get<Index>(target);
  return ast.get<Map>(index ? index->base : target) != nullptr;
}

bool ends_with_aggregation(const Ast& ast, const spec::Registry& registry, ExprId value) {
  while (const auto* block = ast.get<Block>(value)) value = block->value;
  const auto* call = ast.get<Call>(value);
  const spec::Builtin* builtin = call ? registry.find_builtin(call->name) : nullptr;
  return builtin != nullptr && builtin->kind == spec::BuiltinKind::kAggregation;
}

// Replaces the value of the block by its assignment to `target`, a statement.
void assign_inside(Ast& ast, ExprId block_id, ExprId target, source::Span span) {
  const ExprId value = ast.get<Block>(block_id)->value;
  const bool is_block = ast.get<Block>(value) != nullptr;
  if (is_block) assign_inside(ast, value, target, span);
  Stmt last{span, is_block ? StmtNode(ExprStmt{value}) : StmtNode(Assign{target, std::nullopt, value})};
  const StmtId id = ast.stmts.add(std::move(last));
  auto& block = std::get<Block>(ast.exprs[block_id].node);
  block.value = {};
  block.statements.push_back(id);
}

}  // namespace

void assign_inside_blocks(Ast& ast, const spec::Registry& registry) {
  const auto count = static_cast<uint32_t>(ast.stmts.size());
  for (uint32_t i = 0; i < count; ++i) {
    const auto* assign = ast.get<Assign>(StmtId{i});
    if (!assign || assign->op || !ast.get<Block>(assign->value) || !is_map_element(ast, assign->target)) continue;
    if (!ends_with_aggregation(ast, registry, assign->value)) continue;
    const ExprId block = assign->value;
    assign_inside(ast, block, assign->target, ast[StmtId{i}].span);
    ast.stmts[StmtId{i}].node = ExprStmt{block};
  }
}

}  // namespace espy::check
