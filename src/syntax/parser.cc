#include "syntax/parser.h"

#include "syntax/parser_impl.h"
#include "syntax/preprocess.h"

namespace espy::syntax {

Ast parse(const source::Sources& sources, source::SourceId source, source::Diagnostics& diagnostics) {
  Ast ast;
  const Preprocessed preprocessed = preprocess(sources[source].text);
  for (const auto& [where, id, message] : preprocessed.problems) {
    diagnostics.error(id, Span{source, where.begin, where.end}, std::string(message));
  }
  Parser parser(sources, source, &preprocessed.hidden, ast, diagnostics);
  parser.script();
  return ast;
}

ExprId parse_expression(const source::Sources& sources, source::SourceId source, Ast& ast,
                        source::Diagnostics& diagnostics) {
  Parser parser(sources, source, nullptr, ast, diagnostics);
  return parser.lone_expression();
}

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
