#include "lsp/place.h"

#include <vector>

#include "syntax/lexer.h"

namespace espy::lsp {
namespace {

using syntax::Token;
using syntax::TokenKind;

bool is_opening(TokenKind kind) {
  return kind == TokenKind::kLeftBrace || kind == TokenKind::kLeftParen || kind == TokenKind::kLeftBracket;
}
bool is_closing(TokenKind kind) {
  return kind == TokenKind::kRightBrace || kind == TokenKind::kRightParen || kind == TokenKind::kRightBracket;
}

// The tokens that begin before the offset.
std::vector<Token> tokens_before(std::string_view text, uint32_t offset) {
  std::vector<Token> out;
  syntax::Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd && token.begin < offset; token = lexer.next())
    out.push_back(token);
  return out;
}

// The tokens that open what is not closed, as indexes, innermost last.
std::vector<size_t> open_tokens(const std::vector<Token>& tokens) {
  std::vector<size_t> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (is_opening(tokens[i].kind)) out.push_back(i);
    if (is_closing(tokens[i].kind) && !out.empty()) out.pop_back();
  }
  return out;
}

bool has_open_brace(const std::vector<Token>& tokens) {
  for (const size_t each : open_tokens(tokens))
    if (tokens[each].kind == TokenKind::kLeftBrace) return true;
  return false;
}

// The begin of the attach point that ends at the offset; nullopt in a predicate: behind a slash that follows a space.
std::optional<uint32_t> begin_of_attach_point(std::string_view text, const std::vector<Token>& tokens,
                                              uint32_t offset) {
  uint32_t begin = 0;
  for (const Token& token : tokens)
    if (token.end <= offset && (token.kind == TokenKind::kRightBrace || token.kind == TokenKind::kComma))
      begin = token.end;
  if (const size_t line = text.substr(0, offset).rfind('\n'); line != text.npos && line + 1 > begin)
    begin = static_cast<uint32_t>(line + 1);
  while (begin < offset && syntax::is_space(text[begin])) ++begin;
  const std::string_view typed = text.substr(begin, offset - begin);
  const bool is_predicate = typed.starts_with('/') || typed.find(" /") != typed.npos;
  return is_predicate || typed.find(' ') != typed.npos ? std::nullopt : std::optional(begin);
}

bool is_inside(const Token& token, uint32_t offset) {
  if (token.kind == TokenKind::kUnterminatedString || token.kind == TokenKind::kUnterminatedComment) return true;
  return offset < token.end && (token.kind == TokenKind::kString || token.kind == TokenKind::kCharacter);
}

// A line comment has no token.
bool is_in_comment(std::string_view text, uint32_t last_end, uint32_t offset) {
  const std::string_view gap = text.substr(last_end, offset > last_end ? offset - last_end : 0);
  const size_t comment = gap.rfind("//");
  const size_t block = gap.rfind("/*");
  return (comment != gap.npos && gap.find('\n', comment) == gap.npos) ||
         (block != gap.npos && gap.find("*/", block) == gap.npos);
}

}  // namespace

Place place_of(std::string_view text, uint32_t offset) {
  const std::vector<Token> tokens = tokens_before(text, offset);
  const bool is_top = !has_open_brace(tokens);
  if (!tokens.empty() && is_inside(tokens.back(), offset)) return {};
  if (is_in_comment(text, tokens.empty() ? 0 : tokens.back().end, offset)) return {};
  if (is_top)
    if (const auto begin = begin_of_attach_point(text, tokens, offset)) return {Place::Kind::kAttachPoint, *begin};
  uint32_t begin = offset;
  while (begin > 0 && syntax::is_word(text[begin - 1])) --begin;
  if (begin > 0 && text[begin - 1] == '@') return {Place::Kind::kMap, begin - 1};
  if (begin > 0 && text[begin - 1] == '$') return {Place::Kind::kVariable, begin - 1};
  if (begin < offset && syntax::is_digit(text[begin])) return {};
  const std::string_view before = text.substr(0, begin);
  if (before.ends_with("->") || (before.ends_with('.') && !before.ends_with("..")))
    return {Place::Kind::kMember, begin};
  return {Place::Kind::kName, begin};
}

std::optional<OpenCall> open_call(std::string_view text, uint32_t offset) {
  const std::vector<Token> tokens = tokens_before(text, offset);
  const std::vector<size_t> open = open_tokens(tokens);
  for (size_t i = open.size(); i-- > 0;) {
    const size_t at = open[i];
    if (tokens[at].kind == TokenKind::kLeftBrace) return std::nullopt;
    if (tokens[at].kind != TokenKind::kLeftParen || at == 0 || tokens[at - 1].kind != TokenKind::kIdentifier) continue;
    OpenCall out = {std::string(text.substr(tokens[at - 1].begin, tokens[at - 1].end - tokens[at - 1].begin))};
    int depth = 0;
    for (size_t each = at + 1; each < tokens.size(); ++each) {
      depth += is_opening(tokens[each].kind) ? 1 : is_closing(tokens[each].kind) ? -1 : 0;
      if (depth == 0 && tokens[each].kind == TokenKind::kComma) ++out.argument;
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace espy::lsp
