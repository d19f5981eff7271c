// The tokens of one source for a parser: the current token, the end of the last one, and error reporting.
//
// After an error the stream panics: it drops further errors until the parser has skipped to a place from which it can
// continue and calls `calm`. So each mistake gives one diagnostic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "source/diagnostic.h"
#include "syntax/lexer.h"

namespace espy::syntax {

class TokenStream {
 public:
  TokenStream(const source::Sources& sources, source::SourceId source, const std::vector<HiddenRange>* hidden,
              source::Diagnostics& diagnostics);

  const Token& token() const { return token_; }
  // Returns the lexer, positioned after the current token, for lookahead.
  const Lexer& lexer() const { return lexer_; }
  Token peek() const;
  // For lookahead: if `token`, the last one of `lexer`, begins `::NAME`, moves both behind it and returns true.
  static bool skip_qualified_part(Token& token, Lexer& lexer);
  std::string_view source_text() const { return text_; }
  std::string_view text(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }
  std::string_view text() const { return text(token_); }
  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_word(std::string_view word) const { return at(TokenKind::kIdentifier) && text() == word; }
  bool at_end() const { return at(TokenKind::kEnd); }

  // Advances by one token and returns the previous current token.
  Token advance();
  bool accept(TokenKind kind);
  bool accept_word(std::string_view word);
  // Advances past an identifier and the parts that `::` joins to it, without spaces. Returns the whole: "shop::Basket".
  std::string qualified_name();
  // Continues at the byte at `offset`.
  void seek(uint32_t offset);
  // Like `accept`, but reports the missing token: "expected `)` after the arguments, found `;`".
  bool expect(TokenKind kind, std::string_view what, std::string_view hint = {});
  // Skips past the bracket that closes the current one.
  void skip_balanced();

  source::Span span(uint32_t begin, uint32_t end) const { return {source_, begin, end}; }
  source::Span span(const Token& token) const { return span(token.begin, token.end); }
  // Returns the span from `begin` to the end of the last consumed token.
  source::Span span_from(uint32_t begin) const { return span(begin, last_end_ > begin ? last_end_ : begin); }
  // Returns the span of the current token; at the end of the script, of the byte before it.
  source::Span here() const;
  uint32_t last_end() const { return last_end_; }

  // Reports an error and panics. Returns null, and reports nothing, while panicking or after too many errors.
  source::Diagnostic* error(std::string_view id, source::Span span, std::string message, std::string hint = {});
  // Reports "expected WHAT, found `x`" at the current token, or the error that the token itself is.
  source::Diagnostic* unexpected(std::string_view what, std::string hint = {});
  // Reports without panicking, for mistakes from which the parser need not recover.
  void remark(std::string_view id, source::Span span, std::string message, std::string hint = {});
  bool ok() const { return !panic_; }
  void calm() { panic_ = false; }
  // Returns true if an unterminated string or comment may have swallowed brackets.
  bool lost_text() const { return lost_text_; }

  const source::Sources& sources() const { return sources_; }
  source::SourceId source() const { return source_; }
  source::Diagnostics& diagnostics() { return diagnostics_; }

 private:
  std::string found() const;
  bool broken_token();

  const source::Sources& sources_;
  source::SourceId source_;
  std::string_view text_;
  source::Diagnostics& diagnostics_;
  Lexer lexer_;
  Token token_;
  uint32_t last_end_ = 0;
  uint32_t error_count_ = 0;
  bool panic_ = false;
  bool lost_text_ = false;
};

}  // namespace espy::syntax
