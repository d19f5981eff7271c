// Attach points: `kprobe:vfs_*`, `uprobe:/bin/bash:readline`, `BEGIN`.
//
// They do not consist of the language's tokens: a part holds paths, wildcards and offsets, so it is read from the text,
// up to a space, `,` or `{`. The difficult character is `/`, which can continue a path or open a predicate. It belongs
// to the part if the part began with `/`, `.` or a quote, or if a `:` follows before the part can end, since then it is
// within a path: `uprobe:lib/x.so:f`. Else it opens the predicate: `profile:hz:99/pid/{`. After a space it always does.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "syntax/lexer.h"
#include "syntax/parse_c.h"
#include "syntax/parser.h"

namespace espy::syntax {

std::string AttachPointParser::action_name() {
  if (!stream_.at(TokenKind::kIdentifier) || stream_.peek().kind != TokenKind::kAssign) return "";
  const std::string name(stream_.text(stream_.advance()));
  stream_.advance();
  return name;
}

bool AttachPointParser::attach_points(Action& action) {
  const std::string_view text = stream_.source_text();
  uint32_t offset = stream_.token().begin;
  while (true) {
    AttachPoint point;
    if (!attach_point(offset, point)) break;
    action.attach_points.push_back(std::move(point));
    const uint32_t next = stream_.lexer().skip_trivia(offset);
    if (next >= text.size() || text[next] != ',') break;
    offset = stream_.lexer().skip_trivia(next + 1);
  }
  stream_.seek(offset);
  return stream_.ok();
}

bool AttachPointParser::attach_point(uint32_t& offset, AttachPoint& out) {
  const std::string_view text = stream_.source_text();
  const uint32_t begin = offset;
  out.provider = attach_part(offset, true);
  if (out.provider.text.empty()) {
    stream_.seek(begin);
    stream_.unexpected("a probe",
                       stream_.at(TokenKind::kLeftBrace) ? "such as `begin` or `interval:s:1` before the `{`" : "");
    return false;
  }
  while (offset < text.size() && text[offset] == ':') {
    ++offset;
    out.parts.push_back(attach_part(offset, false));
  }
  out.span = stream_.span(begin, offset);
  return stream_.ok();
}

AttachPart AttachPointParser::attach_part(uint32_t& offset, bool is_provider) {
  const std::string_view text = stream_.source_text();
  const uint32_t begin = offset;
  AttachPart out;
  while (offset < text.size() && !part_ends(offset, begin, is_provider)) {
    if (text[offset] == '"') {
      quoted_piece(offset, out);
    } else {
      out.text += text[offset++];
    }
  }
  out.span = stream_.span(begin, offset);
  return out;
}

bool AttachPointParser::part_ends(uint32_t offset, uint32_t part_begin, bool is_provider) const {
  const std::string_view text = stream_.source_text();
  const char c = text[offset];
  if (is_space(c)) return true;
  switch (c) {
    case ':':
    case ',':
    case '{':
    case '}':
    case ';': return true;
    case '(':
    case ')': return is_provider;
    case '/': break;
    default: return false;
  }
  if (is_provider) return true;
  const char first = text[part_begin];
  if (first == '/' || first == '.' || first == '"') return false;
  for (uint32_t ahead = offset + 1; ahead < text.size(); ++ahead) {
    const char a = text[ahead];
    if (a == ':') return false;
    if (is_space(a) || a == ',' || a == '{') return true;
  }
  return true;
}

// "..." within a part, where everything but the closing quote is itself.
void AttachPointParser::quoted_piece(uint32_t& offset, AttachPart& part) {
  Lexer lexer(stream_.source_text());
  lexer.seek(offset);
  const Token token = lexer.next();
  offset = token.end;
  part.quoted = true;
  if (token.kind != TokenKind::kString) {
    stream_.error("unterminated-string", stream_.span(token), "this string has no end", "add the closing `\"`");
    return;
  }
  StringValue value = read_string(stream_.text(token).substr(1, token.end - token.begin - 2));
  if (value.bad_escape) {
    const uint32_t at = token.begin + 1 + *value.bad_escape;
    stream_.remark("unknown-escape", stream_.span(at, at + 2), "invalid escape sequence",
                   "\\n \\t \\r \\\" \\\\ \\0nn \\xnn are");
  }
  part.text += value.value;
}

// Whether the parenthesis at `offset` is closed right before a `{`, as a condition that lacks its slashes.
bool is_before_brace(std::string_view text, size_t offset) {
  size_t depth = 0;
  for (; offset < text.size(); ++offset) {
    if (text[offset] == '(') ++depth;
    if (text[offset] == ')' && --depth == 0) break;
  }
  const size_t next = offset < text.size() ? text.find_first_not_of(" \t\n", offset + 1) : text.npos;
  return next != text.npos && text[next] == '{';
}

void AttachPointParser::expected_body() {
  constexpr std::string_view kPredicate = "a condition stands between slashes: PROBE /pid == 12/ { ... }";
  const std::string_view rest = stream_.source_text().substr(stream_.token().begin);
  if (stream_.at_word("if")) {
    stream_.unexpected("`{` or a predicate after the probe", std::string(kPredicate));
    return;
  }
  // "tracepoint syscalls:sys_enter_openat {"
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t\n{"));
  if (stream_.at(TokenKind::kIdentifier) && word.find(':') != word.npos) {
    stream_.unexpected("`{` or a predicate after the probe",
                       fmt::format("is a `:` missing before `{}`, or a `,`?", word));
    return;
  }
  if (stream_.at(TokenKind::kLeftParen) || stream_.at(TokenKind::kAssign)) {
    stream_.error("statement-outside-action", stream_.span(stream_.token()), "a statement must be inside an action",
                  is_before_brace(rest, 0) ? std::string(kPredicate) : "begin { ... }");
    return;
  }
  stream_.unexpected("`{` or a predicate after the probe", stream_.token().after_newline || stream_.at_end()
                                                               ? ""
                                                               : "a part with spaces in it goes into double quotes");
}

// ---- The top level: definitions, declarations, actions, in any order.

void Parser::script() {
  const std::string_view text = stream_.source_text();
  if (text.starts_with("#!")) ast_.shebang = text.substr(0, text.find('\n'));
  while (!stream_.at_end()) {
    const uint32_t before = stream_.token().begin;
    state_.links = 0;
    item();
    if (!stream_.ok()) recover_item();
    if (stream_.token().begin == before && !stream_.at_end()) stream_.advance();
  }
}

ExprId Parser::lone_expression() {
  const ExprId out = expressions_.expression();
  if (stream_.ok() && !stream_.at_end()) stream_.unexpected("the end of the expression");
  return out;
}

TypeNameId Parser::lone_type() {
  const TypeNameId out = types_.type_name();
  if (stream_.ok() && !stream_.at_end()) stream_.unexpected("the end of the type");
  return out;
}

void Parser::item() {
  if (stream_.accept(TokenKind::kSemicolon)) return;
  if (CParser::at_definition(stream_)) return CParser(stream_, ast_.c_definitions, constant_).definition();
  const TokenKind next = stream_.peek().kind;
  const bool named = next == TokenKind::kIdentifier;
  if (stream_.at_word("config") && (next == TokenKind::kAssign || next == TokenKind::kLeftBrace)) return config();
  if (stream_.at_word("import") && next == TokenKind::kString) return import();
  if (stream_.at_word("let")) return map_declaration();
  if (stream_.at_word("macro") && named) return macro();
  if (stream_.at_word("fn") && named) return function();
  if (stream_.at(TokenKind::kRightBrace)) {
    stream_.error("unopened-brace", stream_.span(stream_.token()), "this `}` closes nothing");
    stream_.advance();
    stream_.calm();
    return;
  }
  action();
}

// config = { name = value; ... }
void Parser::config() {
  stream_.advance();
  stream_.expect(TokenKind::kAssign, "after `config`");
  const Token open = stream_.token();
  stream_.expect(TokenKind::kLeftBrace, "to open the settings");
  while (stream_.ok() && !stream_.at(TokenKind::kRightBrace) && !stream_.at_end()) config_entry();
  if (stream_.at_end()) statements_.unclosed(open, "config block");
  stream_.accept(TokenKind::kRightBrace);
  end_item();
}

void Parser::config_entry() {
  if (stream_.accept(TokenKind::kSemicolon)) return;
  ConfigEntry entry;
  const Token name = stream_.token();
  if (!stream_.expect(TokenKind::kIdentifier, "of a setting")) return;
  entry.name = stream_.text(name);
  entry.name_span = stream_.span(name);
  if (!stream_.expect(TokenKind::kAssign, "after the name of the setting")) return;
  entry.value = expressions_.unary();
  entry.span = stream_.span_from(name.begin);
  ast_.config.push_back(std::move(entry));
  if (stream_.at(TokenKind::kRightBrace)) return;
  stream_.expect(TokenKind::kSemicolon, "after the setting");
}

// import "path";
void Parser::import() {
  const uint32_t begin = stream_.advance().begin;
  const ExprId path = expressions_.string();
  Import out{.path = std::get<StringLiteral>(ast_[path].node).value};
  stream_.accept(TokenKind::kSemicolon);
  out.span = stream_.span_from(begin);
  ast_.imports.push_back(std::move(out));
}

// let @m = kind(entries);
void Parser::map_declaration() {
  const uint32_t begin = stream_.advance().begin;
  MapDeclaration out;
  out.name = stream_.text();
  if (stream_.at(TokenKind::kVariable)) {
    stream_.error("variable-outside-action", stream_.span(stream_.token()), "a variable must be inside an action",
                  "maps are global: `@x`");
    return;
  }
  if (!stream_.expect(TokenKind::kMap, "after `let`")) return;
  if (!stream_.expect(TokenKind::kAssign, "after the name of the map")) return;
  const Token kind = stream_.token();
  if (!stream_.expect(TokenKind::kIdentifier, "of a kind of map", "such as hash(100)")) return;
  out.kind = stream_.text(kind);
  out.kind_span = stream_.span(kind);
  if (stream_.accept(TokenKind::kLeftParen)) {
    if (!stream_.at(TokenKind::kRightParen)) out.max_entries = expressions_.expression();
    stream_.expect(TokenKind::kRightParen, "after the size of the map");
  }
  end_item();
  out.span = stream_.span_from(begin);
  ast_.map_declarations.push_back(std::move(out));
}

// Parses up to the closing parenthesis. Returns false if it is missing.
template <class T>
bool Parser::parameters(std::vector<T>& out, std::optional<T> (Parser::*one)()) {
  while (stream_.ok() && !stream_.at(TokenKind::kRightParen)) {
    if (auto parameter = (this->*one)()) out.push_back(std::move(*parameter));
    if (!stream_.ok() || !stream_.accept(TokenKind::kComma)) break;
  }
  return stream_.expect(TokenKind::kRightParen, "after the parameters");
}

// macro name($a, @b, c = 1) { ... }
void Parser::macro() {
  const uint32_t begin = stream_.advance().begin;
  const Token name = stream_.advance();
  Macro out{.name = std::string(stream_.text(name)), .name_span = stream_.span(name)};
  if (!stream_.expect(TokenKind::kLeftParen, "after the name of the macro",
                      "without parameters it is `macro NAME() { ... }`"))
    return;
  if (!parameters(out.parameters, &Parser::macro_parameter)) return;
  out.body = statements_.block();
  out.span = stream_.span_from(begin);
  ast_.macros.push_back(std::move(out));
}

std::optional<Macro::Parameter> Parser::macro_parameter() {
  const Token token = stream_.token();
  Macro::Parameter out{
      .kind = Macro::ParameterKind::kExpression, .name = std::string(stream_.text(token)), .span = stream_.span(token)};
  switch (token.kind) {
    case TokenKind::kVariable: out.kind = Macro::ParameterKind::kVariable; break;
    case TokenKind::kMap: out.kind = Macro::ParameterKind::kMap; break;
    case TokenKind::kIdentifier: break;
    default: stream_.unexpected("a parameter", "$variable, @map, or a name for any expression"); return std::nullopt;
  }
  stream_.advance();
  if (stream_.accept(TokenKind::kAssign)) out.default_value = expressions_.expression();
  return out;
}

// fn name($a : type) : type { ... }
void Parser::function() {
  const uint32_t begin = stream_.advance().begin;
  const Token name = stream_.advance();
  Function out{.name = std::string(stream_.text(name)), .name_span = stream_.span(name)};
  if (!stream_.expect(TokenKind::kLeftParen, "after the name of the function")) return;
  if (!parameters(out.parameters, &Parser::function_parameter)) return;
  if (!stream_.expect(TokenKind::kColon, "and the type of the result", "`: void` if there is none")) return;
  out.result = types_.type_name();
  out.body = statements_.statement_block();
  out.span = stream_.span_from(begin);
  ast_.functions.push_back(std::move(out));
}

std::optional<Function::Parameter> Parser::function_parameter() {
  const Token token = stream_.token();
  if (!stream_.expect(TokenKind::kVariable, "as a parameter")) return std::nullopt;
  if (!stream_.expect(TokenKind::kColon, "and the type of the parameter")) return std::nullopt;
  return Function::Parameter{std::string(stream_.text(token)), stream_.span(token), types_.type_name()};
}

// [name=]probe, probe /predicate/ { ... }
void Parser::action() {
  const uint32_t begin = stream_.token().begin;
  Action out;
  out.name = attach_points_.action_name();
  if (!attach_points_.attach_points(out)) return;
  if (stream_.at(TokenKind::kSlash)) out.predicate = predicate();
  if (stream_.ok() && !stream_.at(TokenKind::kLeftBrace)) attach_points_.expected_body();
  if (!stream_.ok()) return;
  out.body = statements_.statement_block();
  out.span = stream_.span_from(begin);
  ast_.actions.push_back(std::move(out));
}

// / condition /
ExprId Parser::predicate() {
  stream_.advance();
  state_.in_predicate = true;
  const ExprId out = statements_.condition();
  state_.in_predicate = false;
  stream_.expect(TokenKind::kSlash, "after the predicate");
  return out;
}

// The `;` of a declaration may be left out.
void Parser::end_item() { stream_.accept(TokenKind::kSemicolon); }

// Recovers from an error: skips the item, with its block if it has one.
void Parser::recover_item() {
  stream_.calm();
  while (!stream_.at_end()) {
    if (statements_.at_next_action()) return;
    if (stream_.at(TokenKind::kLeftBrace)) {
      stream_.skip_balanced();
      return;
    }
    if (stream_.accept(TokenKind::kSemicolon) || stream_.accept(TokenKind::kRightBrace)) return;
    stream_.advance();
  }
}

// ---- Blocks and statements.
//
// The last expression of a block is its value if no `;` follows; whether the value is used depends on the context. So
// every block is parsed with its value, and a block that turns out to be a statement is demoted: its value becomes one
// more statement.

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

// Whether the head of C's loop follows: `i = 0;`, `int i = 0;`, `$i = 0;`.
bool is_c_loop(std::string_view text) {
  const size_t end = text.find_first_of("={:;\n");
  return end != text.npos && text[end] == '=' && (end + 1 == text.size() || text[end + 1] != '=');
}

// for ($kv : @map) { }, for ($v : @map[key]) { }, for ($i : a..b) { }, with or without the parentheses
StmtNode StatementParser::for_loop() {
  stream_.advance();
  const bool paren = stream_.accept(TokenKind::kLeftParen);
  if (is_c_loop(stream_.source_text().substr(stream_.token().begin))) {
    stream_.error("bad-loop-range", stream_.span(stream_.token()), "a `for` iterates over a range or a map",
                  "for $i : 0..3 { }");
    while (!stream_.at_end() && !stream_.at(TokenKind::kLeftBrace)) stream_.advance();
    return ForMap{};
  }
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
    stream_.error("bad-loop-range", stream_.span_from(begin), "a loop iterates over a map or a range",
                  "for ($i : 0..10)");
  }
  if (paren) stream_.expect(TokenKind::kRightParen, "after the range or map of the loop");
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
