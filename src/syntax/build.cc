#include "syntax/build.h"

#include <algorithm>
#include <utility>

#include "base/fatal.h"

namespace espy::syntax {

ExprId Build::cast(TypeName type, ExprId operand) const {
  type.span = span;
  const TypeNameId id = ast.type_names.add(std::move(type));
  return add(Cast{id, operand});
}

StmtId Build::when(ExprId condition, std::vector<StmtId> then, std::vector<StmtId> otherwise) const {
  const ExprId then_branch = add(Block{std::move(then), {}});
  const ExprId else_branch = otherwise.empty() ? ExprId() : add(Block{std::move(otherwise), {}});
  return run(add(If{condition, then_branch, else_branch, false}));
}

AttachPoint Build::attach_point(std::string_view provider, std::span<const std::string> parts) const {
  AttachPoint out{.span = span, .provider = {std::string(provider), span, false}, .parts = {}};
  for (const std::string& part : parts) out.parts.push_back({part, span, true});
  return out;
}

void Build::config(std::string name, ExprId value) const { ast.config.push_back({span, std::move(name), span, value}); }

void Build::action(std::vector<AttachPoint> points, std::vector<StmtId> body) const {
  const ExprId block = add(Block{std::move(body), {}});
  ast.actions.push_back({span, "", std::move(points), {}, block});
}

bool is_same(const Ast& ast, ExprId a, ExprId b) {
  if (const auto* left = ast.get<IntegerLiteral>(a), *right = ast.get<IntegerLiteral>(b); left && right)
    return left->value == right->value && left->is_duration == right->is_duration;
  if (const auto* left = ast.get<BoolLiteral>(a), *right = ast.get<BoolLiteral>(b); left && right)
    return left->value == right->value;
  if (const auto* left = ast.get<StringLiteral>(a), *right = ast.get<StringLiteral>(b); left && right)
    return left->value == right->value;
  if (const auto* left = ast.get<Name>(a), *right = ast.get<Name>(b); left && right) return left->name == right->name;
  if (const auto* left = ast.get<Access>(a), *right = ast.get<Access>(b); left && right)
    return left->name == right->name && left->arrow == right->arrow && is_same(ast, left->base, right->base);
  if (const auto* left = ast.get<Call>(a), *right = ast.get<Call>(b); left && right)
    return left->name == right->name &&
           std::ranges::equal(left->arguments, right->arguments,
                              [&](ExprId one, ExprId other) { return is_same(ast, one, other); });
  if (const auto* left = ast.get<Cast>(a), *right = ast.get<Cast>(b); left && right) {
    const TypeName &one = ast[left->type], &other = ast[right->type];
    return one.name == other.name && !one.name.empty() && one.tag == other.tag && one.suffixes.empty() &&
           other.suffixes.empty() && is_same(ast, left->operand, right->operand);
  }
  return false;
}

ExprId copy(const Ast& from, ExprId id, Ast& to) {
  Expr out = from[id];
  if (auto* access = std::get_if<Access>(&out.node)) {
    access->base = copy(from, access->base, to);
  } else if (auto* call = std::get_if<Call>(&out.node)) {
    for (ExprId& argument : call->arguments) argument = copy(from, argument, to);
  } else {
    CHECK(std::holds_alternative<IntegerLiteral>(out.node) || std::holds_alternative<BoolLiteral>(out.node) ||
          std::holds_alternative<StringLiteral>(out.node) || std::holds_alternative<Name>(out.node));
  }
  return to.exprs.add(std::move(out));
}

}  // namespace espy::syntax
