// Blocks and statements.
//
// The last expression of a block is its value if no `;` follows; whether the value is used depends on the context. So
// every block is parsed with its value, and a block that turns out to be a statement is demoted: its value becomes one
// more statement.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "syntax/parser_impl.h"

namespace espy::syntax {

namespace {

struct AssignOperator {
  bool is_assign = false;
  std::optional<BinaryOp> op;
};

AssignOperator assign_operator(TokenKind kind) {
  switch (kind) {
    case TokenKind::kAssign: return {true, std::nullopt};
    case TokenKind::kPlusAssign: return {true, BinaryOp::kAdd};
    case TokenKind::kMinusAssign: return {true, BinaryOp::kSubtract};
    case TokenKind::kStarAssign: return {true, BinaryOp::kMultiply};
    case TokenKind::kSlashAssign: return {true, BinaryOp::kDivide};
    case TokenKind::kPercentAssign: return {true, BinaryOp::kModulo};
    case TokenKind::kAmpersandAssign: return {true, BinaryOp::kBitAnd};
    case TokenKind::kPipeAssign: return {true, BinaryOp::kBitOr};
    case TokenKind::kCaretAssign: return {true, BinaryOp::kBitXor};
    case TokenKind::kShiftLeftAssign: return {true, BinaryOp::kShiftLeft};
    case TokenKind::kShiftRightAssign: return {true, BinaryOp::kShiftRight};
    default: return {};
  }
}

}  // namespace

bool is_keyword(std::string_view word) {
  constexpr std::string_view kKeywords[] = {"if",       "else",     "while",  "unroll", "for",      "return",
                                            "break",    "continue", "let",    "sizeof", "offsetof", "typeof",
                                            "typeinfo", "comptime", "import", "macro"};
  return std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords);
}

void StatementParser::add_statement(Block& out, uint32_t begin, StmtNode node) {
  out.statements.push_back(ast_.stmts.add(Stmt{stream_.span_from(begin), std::move(node)}));
}

// { ... }
ExprId StatementParser::block() {
  const Nesting nesting(state_);
  const Token open = stream_.token();
  if (!stream_.expect(TokenKind::kLeftBrace, "to open a block")) return expressions_.error_expr();
  Block out;
  // Statements are siblings: the height of the block is that of its highest statement.
  const uint32_t links_before = state_.links;
  uint32_t most_links = state_.links;
  const bool predicate_outside = std::exchange(state_.in_predicate, false);
  while (!stream_.at(TokenKind::kRightBrace) && !stream_.at_end() && nesting.ok()) {
    if (at_next_action()) break;
    state_.links = links_before;
    const uint32_t before = stream_.token().begin;
    block_item(out);
    most_links = std::max(most_links, state_.links);
    if (!stream_.ok()) recover_statement();
    if (stream_.token().begin == before && !stream_.at(TokenKind::kRightBrace)) stream_.advance();
  }
  state_.in_predicate = predicate_outside;
  state_.links = most_links;
  if (!nesting.ok()) {
    if (stream_.at(TokenKind::kLeftBrace)) stream_.skip_balanced();
  } else if (!stream_.accept(TokenKind::kRightBrace)) {
    unclosed(open, "block");
  }
  return expressions_.add(open.begin, std::move(out));
}

void StatementParser::unclosed(Token open, std::string_view what) {
  const bool at_end = stream_.at_end();
  if (at_end && stream_.lost_text()) return;
  auto* error = stream_.error("unclosed-brace", stream_.here(),
                              at_end ? "the script ends inside a block" : "this begins an action inside a block",
                              "a `}` is missing");
  if (error != nullptr) error->notes.push_back({stream_.span(open), fmt::format("the {} opens here", what)});
}

// `kprobe:f` at the start of a line inside a block: the block before it was not closed.
bool StatementParser::at_next_action() const {
  const Token& token = stream_.token();
  if (token.kind != TokenKind::kIdentifier || !token.after_newline) return false;
  const std::string_view rest = stream_.source_text().substr(token.end);
  return rest.size() > 1 && rest[0] == ':' && !is_space(rest[1]);
}

ExprId StatementParser::statement_block() {
  const ExprId body = block();
  demote(body);
  return body;
}

// Turns the value of `id`, which is used as a statement, into a statement.
void StatementParser::demote(ExprId id) {
  if (!id.valid()) return;
  if (const auto* branches = ast_.get<If>(id)) {
    const If copy = *branches;
    demote(copy.then_branch);
    demote(copy.else_branch);
    return;
  }
  const auto* block = ast_.get<Block>(id);
  if (block == nullptr || !block->value.valid()) return;
  const ExprId value = block->value;
  demote(value);
  const StmtId statement = ast_.stmts.add(Stmt{ast_[value].span, ExprStmt{value}});
  auto& changed = std::get<Block>(ast_.exprs[id].node);
  changed.statements.push_back(statement);
  changed.value = {};
}

// Returns true if `id`, the end of a block, gives the block a value.
bool StatementParser::yields(ExprId id) const {
  if (const auto* block = ast_.get<Block>(id)) return block->value.valid();
  if (const auto* branches = ast_.get<If>(id))
    return yields(branches->then_branch) && branches->else_branch.valid() && yields(branches->else_branch);
  return true;
}

void StatementParser::block_item(Block& out) {
  if (stream_.accept(TokenKind::kSemicolon)) return;
  if (!keyword_statement(out)) expression_statement(out);
}

// Parses a statement that begins with a keyword. Returns false, and consumes nothing, if there is none.
bool StatementParser::keyword_statement(Block& out) {
  const uint32_t begin = stream_.token().begin;
  if (!stream_.at(TokenKind::kIdentifier)) return false;
  const std::string_view word = stream_.text();
  if (word == "while") {
    add_statement(out, begin, while_loop());
    return true;
  }
  if (word == "unroll") {
    stream_.advance();
    const ExprId count = condition();
    const ExprId body = statement_block();
    add_statement(out, begin, Unroll{count, body});
    return true;
  }
  if (word == "for") {
    add_statement(out, begin, for_loop());
    return true;
  }
  if (word == "else") {
    stream_.error("else-without-if", stream_.span(stream_.token()), "this `else` belongs to no `if`");
    return true;
  }
  StmtNode node;
  if (word == "let") {
    node = let();
  } else if (word == "break" || word == "continue") {
    stream_.advance();
    if (word == "break")
      node = Break{};
    else
      node = Continue{};
  } else if (word == "return") {
    stream_.advance();
    const bool bare = stream_.at(TokenKind::kSemicolon) || stream_.at(TokenKind::kRightBrace);
    node = Return{bare ? ExprId{} : expressions_.expression()};
  } else if (word == "_" && stream_.peek().kind == TokenKind::kAssign) {
    stream_.advance();
    stream_.advance();
    node = Discard{expressions_.expression()};
  } else {
    return false;
  }
  add_statement(out, begin, std::move(node));
  end_statement();
  return true;
}

// An expression, an assignment, or the value of the block.
void StatementParser::expression_statement(Block& out) {
  const uint32_t begin = stream_.token().begin;
  const bool braced = stream_.at_word("if") || stream_.at(TokenKind::kLeftBrace);
  const ExprId value =
      braced ? (stream_.at(TokenKind::kLeftBrace) ? block() : if_expression()) : expressions_.expression();
  if (!stream_.ok()) return;
  if (assign_operator(stream_.token().kind).is_assign) {
    StmtNode node = assignment(value);
    add_statement(out, begin, std::move(node));
    return end_statement();
  }
  if (stream_.at(TokenKind::kRightBrace) && yields(value)) {
    out.value = value;
    return;
  }
  demote(value);
  add_statement(out, begin, ExprStmt{value});
  if (braced) return;
  if (stream_.at(TokenKind::kLeftBrace)) misspelt_keyword(value);
  end_statement();
}

// Reports `whle ($x) {`: a call with a block after it is a misspelt statement.
void StatementParser::misspelt_keyword(ExprId read_as) {
  constexpr std::string_view kWords[] = {"if", "while", "unroll", "for"};
  const auto* call = ast_.get<Call>(read_as);
  if (call == nullptr) return;
  const std::string meant = nearest(call->name, kWords);
  stream_.error("unknown-keyword", call->name_span, fmt::format("no statement begins with `{}`", call->name),
                meant.empty() ? "" : fmt::format("did you mean `{}`?", meant));
}

StmtNode StatementParser::assignment(ExprId target) {
  const auto [is_assign, op] = assign_operator(stream_.token().kind);
  expressions_.check_assignable(target);
  stream_.advance();
  return Assign{target, op, expressions_.expression()};
}

// let $x : type = value
StmtNode StatementParser::let() {
  stream_.advance();
  Let out{.name = std::string(stream_.text()), .name_span = stream_.span(stream_.token())};
  if (!stream_.expect(TokenKind::kVariable, "after `let`", "variables begin with `$`")) return out;
  if (stream_.accept(TokenKind::kColon)) out.type = types_.type_name();
  if (stream_.accept(TokenKind::kAssign)) out.value = expressions_.expression();
  return out;
}

StmtNode StatementParser::while_loop() {
  stream_.advance();
  const ExprId test = condition();
  const ExprId body = statement_block();
  return While{test, body};
}

// for ($kv : @map) { }, for ($v : @map[key]) { }, for ($i : a..b) { }, with or without the parentheses
StmtNode StatementParser::for_loop() {
  stream_.advance();
  const bool paren = stream_.accept(TokenKind::kLeftParen);
  const std::string variable(stream_.text());
  const Span variable_span = stream_.span(stream_.token());
  stream_.expect(TokenKind::kVariable, "after `for`");
  stream_.expect(TokenKind::kColon, "between the variable and what it runs over");
  const uint32_t begin = stream_.token().begin;
  const ExprId first = expressions_.expression();
  ExprId end;
  if (stream_.ok() && stream_.accept(TokenKind::kDotDot)) {
    end = expressions_.expression();
  } else if (ast_.get<Map>(first) == nullptr && ast_.get<Index>(first) == nullptr) {
    stream_.error("bad-loop-range", stream_.span_from(begin), "a loop runs over a map or a range", "for ($i : 0..10)");
  }
  if (paren) stream_.expect(TokenKind::kRightParen, "after what the loop runs over");
  const ExprId body = statement_block();
  if (end.valid()) return ForRange{variable, variable_span, first, end, body};
  return ForMap{variable, variable_span, first, body};
}

ExprId StatementParser::condition() {
  const uint32_t begin = stream_.token().begin;
  state_.condition_begin = begin;
  const ExprId out = expressions_.expression();
  const auto* record = ast_.get<Record>(out);
  if (stream_.ok() && (stream_.at(TokenKind::kAssign) || (record != nullptr && record->names.size() == 1))) {
    stream_.error("assignment-in-expression", record ? stream_.span_from(begin) : stream_.span(stream_.token()),
                  "an assignment is not a condition", "use `==` to compare");
  }
  return out;
}

ExprId StatementParser::if_expression() {
  const Nesting nesting(state_);
  const uint32_t begin = stream_.advance().begin;
  if (!nesting.ok()) return expressions_.error_expr();
  If out;
  out.is_comptime = stream_.accept_word("comptime");
  out.condition = condition();
  out.then_branch = block();
  if (stream_.ok() && stream_.accept_word("else")) out.else_branch = else_branch();
  for (const std::string_view word : {"elif", "elsif", "elseif"}) {
    if (stream_.at_word(word)) {
      stream_.error("unknown-keyword", stream_.span(stream_.token()), fmt::format("there is no `{}`", word),
                    "write `else if`");
    }
  }
  return expressions_.add(begin, out);
}

ExprId StatementParser::else_branch() { return stream_.at_word("if") ? if_expression() : block(); }

// The `;`, which may be missing only before a `}`.
void StatementParser::end_statement() {
  if (!stream_.ok() || stream_.accept(TokenKind::kSemicolon) || stream_.at(TokenKind::kRightBrace) || stream_.at_end())
    return;
  const Token& token = stream_.token();
  const uint32_t end = stream_.last_end();
  const bool starts_statement =
      token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kVariable || token.kind == TokenKind::kMap;
  if (token.after_newline && starts_statement) {
    stream_.remark("missing-semicolon", stream_.span(end > 0 ? end - 1 : 0, end),
                   "a `;` is missing after this statement");
    return;
  }
  stream_.unexpected("`;` after the statement");
}

// Recovers from an error: skips past the `;` of the statement, or to the `}` of its block.
void StatementParser::recover_statement() {
  stream_.calm();
  while (!stream_.at_end() && !stream_.at(TokenKind::kRightBrace)) {
    if (at_next_action()) return;
    if (stream_.accept(TokenKind::kSemicolon)) return;
    if (!stream_.at(TokenKind::kLeftBrace)) {
      stream_.advance();
      continue;
    }
    stream_.skip_balanced();
    if (!stream_.at_word("else")) return;
  }
}

}  // namespace espy::syntax
