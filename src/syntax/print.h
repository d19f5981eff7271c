// Prints expressions, types and simple statements on one line, for the formatter.
#pragma once

#include <string>
#include <vector>

#include "syntax/ast.h"

namespace espy::syntax {

class Printer {
 public:
  // With `sources`, literals are printed as in the source, else from their values.
  explicit Printer(const Ast& ast, const source::Sources* sources = nullptr) : ast_(ast), sources_(sources) {}

  std::string expr(ExprId id) { return print(id, 0); }
  // Returns a statement without its `;`, loops and blocks on the same line.
  std::string stmt(StmtId id);
  std::string type(TypeNameId id);
  // Returns the text before the block of a loop or an if: "while ($x < 3)".
  std::string header(const While& n) { return "while (" + expr(n.condition) + ")"; }
  std::string header(const Unroll& n) { return "unroll (" + expr(n.count) + ")"; }
  std::string header(const ForMap& n) { return "for (" + n.variable + " : " + expr(n.map) + ")"; }
  std::string header(const ForRange& n) {
    return "for (" + n.variable + " : " + expr(n.begin) + ".." + expr(n.end) + ")";
  }
  std::string header(const If& n) { return (n.is_comptime ? "if comptime (" : "if (") + expr(n.condition) + ")"; }

 private:
  std::string print(ExprId id, int lowest);
  int level(ExprId id) const;
  std::string list(const std::vector<ExprId>& ids);
  std::string operand(const Binary& parent, ExprId child, int lowest);
  std::string literal(Span span, std::string otherwise) const;

  std::string show(const ErrorExpr&, Span) { return "<error>"; }
  std::string show(const IntegerLiteral& n, Span span);
  std::string show(const BoolLiteral& n, Span) { return n.value ? "true" : "false"; }
  std::string show(const StringLiteral& n, Span span);
  std::string show(const Name& n, Span) { return n.name; }
  std::string show(const Variable& n, Span) { return n.name; }
  std::string show(const Map& n, Span) { return n.name; }
  std::string show(const Positional& n, Span) { return "$" + std::to_string(n.index); }
  std::string show(const PositionalCount&, Span) { return "$#"; }
  std::string show(const Index& n, Span);
  std::string show(const Call& n, Span);
  std::string show(const TypeExpr& n, Span) { return type(n.type); }
  std::string show(const Sizeof& n, Span) { return "sizeof(" + expr(n.operand) + ")"; }
  std::string show(const Offsetof& n, Span);
  std::string show(const Typeinfo& n, Span) { return "typeinfo(" + expr(n.operand) + ")"; }
  std::string show(const Comptime& n, Span);
  std::string show(const Unary& n, Span);
  std::string show(const Binary& n, Span);
  std::string show(const Ternary& n, Span);
  std::string show(const Access& n, Span);
  std::string show(const TupleAccess& n, Span);
  std::string show(const Cast& n, Span);
  std::string show(const Tuple& n, Span);
  std::string show(const Record& n, Span);
  std::string show(const Block& n, Span);
  std::string show(const If& n, Span);

  std::string show(const ExprStmt& n) { return expr(n.value); }
  std::string show(const Assign& n);
  std::string show(const Let& n);
  std::string show(const Discard& n) { return "_ = " + expr(n.value); }
  std::string show(const While& n) { return header(n) + " " + expr(n.body); }
  std::string show(const Unroll& n) { return header(n) + " " + expr(n.body); }
  std::string show(const ForMap& n) { return header(n) + " " + expr(n.body); }
  std::string show(const ForRange& n) { return header(n) + " " + expr(n.body); }
  std::string show(const Break&) { return "break"; }
  std::string show(const Continue&) { return "continue"; }
  std::string show(const Return& n) { return n.value ? "return " + expr(n.value) : "return"; }

  const Ast& ast_;
  const source::Sources* sources_;
};

}  // namespace espy::syntax
