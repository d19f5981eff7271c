// The top level: definitions, declarations, actions, in any order.
#include <fmt/format.h>

#include "syntax/parse_c.h"
#include "syntax/parser_impl.h"

namespace espy::syntax {

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
    stream_.error("variable-outside-action", stream_.span(stream_.token()), "variables live inside an action",
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

}  // namespace espy::syntax
