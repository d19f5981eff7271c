// Splits text into tokens, one at a time.
//
// Total: every byte sequence has tokens, and errors are token kinds. A lexer is a text and a position, so a copy serves
// as lookahead. Attach points follow other rules; the parser reads them from the text (parse_attach.cc) and then moves
// the lexer past them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "syntax/token.h"

namespace espy::syntax {

// Bytes [begin, end) that the preprocessor removed.
struct HiddenRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

class Lexer {
 public:
  // Requires `hidden` (null for none) to be sorted and to outlive the lexer.
  explicit Lexer(std::string_view text, const std::vector<HiddenRange>* hidden = nullptr)
      : text_(text), hidden_(hidden) {}

  Token next();
  // Returns the offset of the first byte at or after `offset` that is neither space, comment nor hidden.
  uint32_t skip_trivia(uint32_t offset) const;
  void seek(uint32_t offset) { offset_ = offset; }

 private:
  uint32_t skip_trivia(uint32_t offset, bool& newline) const;
  uint32_t hidden_end(uint32_t offset) const;
  TokenKind scan(uint32_t begin);
  TokenKind scan_quoted(char quote);
  TokenKind scan_sigil(char sigil);
  TokenKind scan_punctuation();
  void skip_word();
  char peek(uint32_t ahead = 0) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }

  std::string_view text_;
  const std::vector<HiddenRange>* hidden_;
  uint32_t offset_ = 0;
};

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_word(char c) { return is_word_start(c) || is_digit(c); }
inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

}  // namespace espy::syntax
