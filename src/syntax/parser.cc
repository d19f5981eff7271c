#include "syntax/parser.h"

#include <utility>

#include "syntax/preprocess.h"

namespace espy::syntax {

namespace {

void swap_tables(Ast& a, Ast& b) {
  std::swap(a.exprs, b.exprs);
  std::swap(a.stmts, b.stmts);
  std::swap(a.type_names, b.type_names);
}

}  // namespace

MacroBodies macro_bodies(const Prelude& prelude) {
  MacroBodies out;
  if (prelude.has_btf) out.emplace(kBtfMacro, "1");
  for (const CDefinition& definition : prelude.definitions) {
    if (const auto* define = std::get_if<CDefine>(&definition)) out.insert_or_assign(define->name, define->body);
  }
  return out;
}

Ast parse(const source::Sources& sources, source::SourceId source, source::Diagnostics& diagnostics,
          const Prelude& prelude) {
  Ast nothing;
  Ast ast = parse_part(sources, source, nothing, diagnostics, prelude);
  swap_tables(ast, nothing);
  return ast;
}

Ast parse_part(const source::Sources& sources, source::SourceId source, Ast& whole, source::Diagnostics& diagnostics,
               const Prelude& prelude) {
  Ast ast;
  ast.c_definitions = prelude.definitions;
  swap_tables(ast, whole);
  const Preprocessed preprocessed = preprocess(sources[source].text, macro_bodies(prelude));
  for (const auto& [where, id, message] : preprocessed.problems) {
    diagnostics.error(id, Span{source, where.begin, where.end}, std::string(message));
  }
  Parser parser(sources, source, &preprocessed.hidden, ast, diagnostics, prelude.constant);
  parser.script();
  swap_tables(ast, whole);
  return ast;
}

ExprId parse_expression(const source::Sources& sources, source::SourceId source, Ast& ast,
                        source::Diagnostics& diagnostics) {
  Parser parser(sources, source, nullptr, ast, diagnostics);
  return parser.lone_expression();
}

TypeNameId parse_type(const source::Sources& sources, source::SourceId source, Ast& ast,
                      source::Diagnostics& diagnostics) {
  Parser parser(sources, source, nullptr, ast, diagnostics);
  return parser.lone_type();
}

Ast::Ast() = default;
Ast::Ast(const Ast&) = default;
Ast::Ast(Ast&&) noexcept = default;
Ast& Ast::operator=(const Ast&) = default;
Ast& Ast::operator=(Ast&&) noexcept = default;
Ast::~Ast() = default;

const char* spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLogicalOr: return "||";
    case BinaryOp::kLogicalAnd: return "&&";
    case BinaryOp::kBitOr: return "|";
    case BinaryOp::kBitXor: return "^";
    case BinaryOp::kBitAnd: return "&";
    case BinaryOp::kEqual: return "==";
    case BinaryOp::kNotEqual: return "!=";
    case BinaryOp::kLess: return "<";
    case BinaryOp::kLessEqual: return "<=";
    case BinaryOp::kGreater: return ">";
    case BinaryOp::kGreaterEqual: return ">=";
    case BinaryOp::kShiftLeft: return "<<";
    case BinaryOp::kShiftRight: return ">>";
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSubtract: return "-";
    case BinaryOp::kMultiply: return "*";
    case BinaryOp::kDivide: return "/";
    case BinaryOp::kModulo: return "%";
    case BinaryOp::kMatch: return "~";
  }
  UNREACHABLE("binary operator");
}

const char* spelling(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNot: return "!";
    case UnaryOp::kBitNot: return "~";
    case UnaryOp::kNegate: return "-";
    case UnaryOp::kDereference: return "*";
    case UnaryOp::kAddressOf: return "&";
    case UnaryOp::kPreIncrement:
    case UnaryOp::kPostIncrement: return "++";
    case UnaryOp::kPreDecrement:
    case UnaryOp::kPostDecrement: return "--";
  }
  UNREACHABLE("unary operator");
}

}  // namespace espy::syntax
