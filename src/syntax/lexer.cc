#include "syntax/lexer.h"

#include <algorithm>

namespace espy::syntax {

namespace {

struct Punctuation {
  std::string_view text;
  TokenKind kind;
};

// A token that is a prefix of another follows it.
constexpr Punctuation kPunctuation[] = {
    {"<<=", TokenKind::kShiftLeftAssign},
    {">>=", TokenKind::kShiftRightAssign},
    {"...", TokenKind::kEllipsis},
    {"->", TokenKind::kArrow},
    {"..", TokenKind::kDotDot},
    {"++", TokenKind::kIncrement},
    {"--", TokenKind::kDecrement},
    {"<<", TokenKind::kShiftLeft},
    {">>", TokenKind::kShiftRight},
    {"&&", TokenKind::kLogicalAnd},
    {"||", TokenKind::kLogicalOr},
    {"==", TokenKind::kEqual},
    {"!=", TokenKind::kNotEqual},
    {"<=", TokenKind::kLessEqual},
    {">=", TokenKind::kGreaterEqual},
    {"+=", TokenKind::kPlusAssign},
    {"-=", TokenKind::kMinusAssign},
    {"*=", TokenKind::kStarAssign},
    {"/=", TokenKind::kSlashAssign},
    {"%=", TokenKind::kPercentAssign},
    {"&=", TokenKind::kAmpersandAssign},
    {"|=", TokenKind::kPipeAssign},
    {"^=", TokenKind::kCaretAssign},
    {"(", TokenKind::kLeftParen},
    {")", TokenKind::kRightParen},
    {"[", TokenKind::kLeftBracket},
    {"]", TokenKind::kRightBracket},
    {"{", TokenKind::kLeftBrace},
    {"}", TokenKind::kRightBrace},
    {",", TokenKind::kComma},
    {";", TokenKind::kSemicolon},
    {":", TokenKind::kColon},
    {"?", TokenKind::kQuestion},
    {".", TokenKind::kDot},
    {"!", TokenKind::kNot},
    {"~", TokenKind::kBitNot},
    {"+", TokenKind::kPlus},
    {"-", TokenKind::kMinus},
    {"*", TokenKind::kStar},
    {"/", TokenKind::kSlash},
    {"%", TokenKind::kPercent},
    {"&", TokenKind::kAmpersand},
    {"|", TokenKind::kPipe},
    {"^", TokenKind::kCaret},
    {"<", TokenKind::kLess},
    {">", TokenKind::kGreater},
    {"=", TokenKind::kAssign},
    {"#", TokenKind::kHash},
};

}  // namespace

Token Lexer::next() {
  Token token;
  offset_ = skip_trivia(offset_, token.after_newline);
  token.begin = offset_;
  if (offset_ < text_.size()) token.kind = scan(offset_);
  token.end = offset_;
  return token;
}

uint32_t Lexer::skip_trivia(uint32_t offset) const {
  bool newline = false;
  return skip_trivia(offset, newline);
}

uint32_t Lexer::skip_trivia(uint32_t offset, bool& newline) const {
  const auto size = static_cast<uint32_t>(text_.size());
  if (offset == 0 && text_.starts_with("#!")) offset = static_cast<uint32_t>(std::min(text_.find('\n'), text_.size()));
  while (offset < size) {
    const char c = text_[offset];
    if (is_space(c)) {
      newline |= c == '\n';
      ++offset;
    } else if (c == '/' && offset + 1 < size && text_[offset + 1] == '/') {
      offset = static_cast<uint32_t>(std::min(text_.find('\n', offset), text_.size()));
    } else if (c == '/' && offset + 1 < size && text_[offset + 1] == '*') {
      const size_t close = text_.find("*/", offset + 2);
      if (close == std::string_view::npos) return offset;
      newline |= text_.substr(offset, close - offset).find('\n') != std::string_view::npos;
      offset = static_cast<uint32_t>(close + 2);
    } else if (c == '#' && hidden_end(offset) > offset) {
      offset = hidden_end(offset);
    } else {
      break;
    }
  }
  return offset;
}

// Returns the end of the hidden range that begins at `offset`; `offset` if there is none.
uint32_t Lexer::hidden_end(uint32_t offset) const {
  if (hidden_ == nullptr) return offset;
  const auto range = std::lower_bound(hidden_->begin(), hidden_->end(), offset,
                                      [](const HiddenRange& r, uint32_t o) { return r.begin < o; });
  return range != hidden_->end() && range->begin == offset ? range->end : offset;
}

TokenKind Lexer::scan(uint32_t begin) {
  const char c = text_[begin];
  if (is_word(c)) {
    skip_word();
    return is_digit(c) ? TokenKind::kInteger : TokenKind::kIdentifier;
  }
  if (c == '"' || c == '\'') return scan_quoted(c);
  if (c == '$' || c == '@') return scan_sigil(c);
  return scan_punctuation();
}

TokenKind Lexer::scan_quoted(char quote) {
  ++offset_;
  while (offset_ < text_.size() && peek() != '\n') {
    const char c = text_[offset_++];
    if (c == quote) return quote == '"' ? TokenKind::kString : TokenKind::kCharacter;
    if (c == '\\' && offset_ < text_.size() && peek() != '\n') ++offset_;
  }
  return quote == '"' ? TokenKind::kUnterminatedString : TokenKind::kUnknown;
}

TokenKind Lexer::scan_sigil(char sigil) {
  ++offset_;
  if (sigil == '@') {
    skip_word();
    return TokenKind::kMap;
  }
  if (peek() == '#') {
    ++offset_;
    return TokenKind::kPositionalCount;
  }
  const char first = peek();
  if (is_digit(first)) {
    while (is_digit(peek())) ++offset_;
    return TokenKind::kPositional;
  }
  skip_word();
  return is_word_start(first) ? TokenKind::kVariable : TokenKind::kUnknown;
}

TokenKind Lexer::scan_punctuation() {
  const std::string_view rest = text_.substr(offset_);
  if (rest.starts_with("/*")) {
    offset_ = static_cast<uint32_t>(text_.size());
    return TokenKind::kUnterminatedComment;
  }
  for (const auto& [text, kind] : kPunctuation) {
    if (!rest.starts_with(text)) continue;
    offset_ += static_cast<uint32_t>(text.size());
    return kind;
  }
  ++offset_;
  while ((peek() & 0xc0) == 0x80) ++offset_;  // the rest of a UTF-8 character
  return TokenKind::kUnknown;
}

void Lexer::skip_word() {
  while (offset_ < text_.size() && is_word(text_[offset_])) ++offset_;
}

}  // namespace espy::syntax
