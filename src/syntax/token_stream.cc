#include "syntax/token_stream.h"

#include <fmt/format.h>

namespace espy::syntax {

namespace {

constexpr uint32_t kMaxErrors = 100;

// Returns the spelling of a punctuation token.
std::string_view spelling(TokenKind kind) {
  switch (kind) {
    case TokenKind::kLeftParen: return "`(`";
    case TokenKind::kRightParen: return "`)`";
    case TokenKind::kLeftBracket: return "`[`";
    case TokenKind::kRightBracket: return "`]`";
    case TokenKind::kLeftBrace: return "`{`";
    case TokenKind::kRightBrace: return "`}`";
    case TokenKind::kComma: return "`,`";
    case TokenKind::kColon: return "`:`";
    case TokenKind::kSemicolon: return "`;`";
    case TokenKind::kAssign: return "`=`";
    case TokenKind::kSlash: return "`/`";
    case TokenKind::kIdentifier: return "a name";
    case TokenKind::kString: return "a string";
    case TokenKind::kVariable: return "a variable";
    default: return "something else";
  }
}

}  // namespace

TokenStream::TokenStream(const source::Sources& sources, source::SourceId source,
                         const std::vector<HiddenRange>* hidden, source::Diagnostics& diagnostics)
    : sources_(sources),
      source_(source),
      text_(sources[source].text),
      diagnostics_(diagnostics),
      lexer_(text_, hidden),
      token_(lexer_.next()) {}

source::Span TokenStream::here() const {
  return at_end() && last_end_ > 0 ? span(last_end_ - 1, last_end_) : span(token_);
}

Token TokenStream::peek() const {
  Lexer ahead = lexer_;
  return ahead.next();
}

Token TokenStream::advance() {
  const Token left = token_;
  if (left.kind != TokenKind::kEnd) last_end_ = left.end;
  token_ = lexer_.next();
  return left;
}

bool TokenStream::accept(TokenKind kind) {
  if (!at(kind)) return false;
  advance();
  return true;
}

bool TokenStream::accept_word(std::string_view word) {
  if (!at_word(word)) return false;
  advance();
  return true;
}

bool TokenStream::skip_qualified_part(Token& token, Lexer& lexer) {
  if (token.kind != TokenKind::kColon) return false;
  Lexer ahead = lexer;
  const Token colon = ahead.next();
  const Token name = ahead.next();
  if (colon.kind != TokenKind::kColon || colon.begin != token.end) return false;
  if (name.kind != TokenKind::kIdentifier || name.begin != colon.end) return false;
  token = ahead.next();
  lexer = ahead;
  return true;
}

std::string TokenStream::qualified_name() {
  const uint32_t begin = token_.begin;
  advance();
  Token after = token_;
  for (Lexer ahead = lexer_; skip_qualified_part(after, ahead);)
    for (int i = 0; i < 3; ++i) advance();
  return std::string(text_.substr(begin, last_end_ - begin));
}

void TokenStream::seek(uint32_t offset) {
  last_end_ = offset;
  lexer_.seek(offset);
  token_ = lexer_.next();
}

bool TokenStream::expect(TokenKind kind, std::string_view what, std::string_view hint) {
  if (accept(kind)) return true;
  unexpected(what.empty() ? std::string(spelling(kind)) : fmt::format("{} {}", spelling(kind), what),
             std::string(hint));
  return false;
}

void TokenStream::skip_balanced() {
  int depth = 0;
  do {
    switch (token_.kind) {
      case TokenKind::kLeftParen:
      case TokenKind::kLeftBracket:
      case TokenKind::kLeftBrace: ++depth; break;
      case TokenKind::kRightParen:
      case TokenKind::kRightBracket:
      case TokenKind::kRightBrace: --depth; break;
      case TokenKind::kEnd: return;
      default: break;
    }
    advance();
  } while (depth > 0);
}

source::Diagnostic* TokenStream::error(std::string_view id, source::Span span, std::string message, std::string hint) {
  if (panic_) return nullptr;
  panic_ = true;
  if (++error_count_ > kMaxErrors) return nullptr;
  return &diagnostics_.error(id, span, std::move(message), std::move(hint));
}

void TokenStream::remark(std::string_view id, source::Span span, std::string message, std::string hint) {
  if (!panic_ && ++error_count_ <= kMaxErrors) diagnostics_.error(id, span, std::move(message), std::move(hint));
}

source::Diagnostic* TokenStream::unexpected(std::string_view what, std::string hint) {
  if (panic_ || broken_token()) return nullptr;
  return error("unexpected-token", here(), fmt::format("expected {}, found {}", what, found()), std::move(hint));
}

// Reports the error that the current token itself is, if it is one.
bool TokenStream::broken_token() {
  const source::Span where = span(token_);
  lost_text_ |= at(TokenKind::kUnterminatedString) || at(TokenKind::kUnterminatedComment);
  switch (token_.kind) {
    case TokenKind::kUnterminatedString:
      error("unterminated-string", where, "this string has no end", "add the closing `\"`");
      return true;
    case TokenKind::kUnterminatedComment:
      error("unterminated-comment", where, "this comment has no end", "add the closing `*/`");
      return true;
    case TokenKind::kCharacter:
      error("unexpected-character", where, "there are no character literals", "strings are written in double quotes");
      return true;
    case TokenKind::kUnknown:
      error("unexpected-character", where, fmt::format("`{}` has no meaning here", text()),
            text().starts_with('\'') ? "strings are written in double quotes" : "");
      return true;
    default: return false;
  }
}

std::string TokenStream::found() const {
  if (at_end()) return "the end of the script";
  constexpr size_t kLongest = 40;
  const std::string_view shown = text();
  return shown.size() <= kLongest ? fmt::format("`{}`", shown) : fmt::format("`{}...`", shown.substr(0, kLongest));
}

}  // namespace espy::syntax
