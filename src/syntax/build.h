// Builds trees without text, for the scripts that commands write. Names of files go into a tree unchanged, and are
// never parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syntax/ast.h"

namespace espy::syntax {

// Adds nodes to `ast`. Each has the place `span`, which diagnostics show: the place of the typed text. Names are of any
// bytes. Names of variables and maps include their `$` and `@`. A node belongs into one place of the tree.
struct Build {
  Ast& ast;
  Span span;

  ExprId add(ExprNode node) const { return ast.exprs.add({span, std::move(node)}); }
  StmtId add(StmtNode node) const { return ast.stmts.add({span, std::move(node)}); }

  ExprId number(uint64_t value) const { return add(IntegerLiteral{value}); }
  ExprId truth(bool value) const { return add(BoolLiteral{value}); }
  ExprId text(std::string value) const { return add(StringLiteral{std::move(value)}); }
  ExprId name(std::string name) const { return add(Name{std::move(name)}); }
  ExprId variable(std::string name) const { return add(Variable{std::move(name)}); }
  ExprId map(std::string name) const { return add(Map{std::move(name)}); }
  ExprId tuple(std::vector<ExprId> elements) const { return add(Tuple{std::move(elements)}); }
  ExprId record(std::string name, ExprId value) const { return add(Record{{std::move(name)}, {value}}); }
  ExprId index(ExprId base, std::vector<ExprId> indices) const { return add(Index{base, std::move(indices)}); }
  ExprId unary(UnaryOp op, ExprId operand) const { return add(Unary{op, operand}); }
  ExprId call(std::string name, std::vector<ExprId> arguments) const {
    return add(Call{std::move(name), span, std::move(arguments)});
  }
  ExprId member(ExprId base, std::string name) const { return add(Access{base, std::move(name), span, false}); }
  ExprId behind(ExprId pointer, std::string name) const { return add(Access{pointer, std::move(name), span, true}); }
  ExprId binary(BinaryOp op, ExprId left, ExprId right) const { return add(Binary{op, left, right, span}); }
  // The span of `type` is set.
  ExprId cast(TypeName type, ExprId operand) const;

  StmtId run(ExprId value) const { return add(ExprStmt{value}); }
  StmtId assign(ExprId target, ExprId value) const { return add(Assign{target, std::nullopt, value}); }
  // if (condition) { then } else { otherwise }; without `else` if there is nothing in it.
  StmtId when(ExprId condition, std::vector<StmtId> then, std::vector<StmtId> otherwise = {}) const;

  // The parts are what a script would have in quotes.
  AttachPoint attach_point(std::string_view provider, std::span<const std::string> parts) const;
  void config(std::string name, ExprId value) const;
  void action(std::vector<AttachPoint> points, std::vector<StmtId> body) const;
};

// Whether two expressions of a tree are equal, spans aside. Only for literals, names, members, calls and casts to plain
// types; false for others.
bool is_same(const Ast& ast, ExprId a, ExprId b);

// Copies an expression to another tree, with its spans. Only for literals, names, members and calls.
ExprId copy(const Ast& from, ExprId id, Ast& to);

}  // namespace espy::syntax
