// The tokens of one source as a parser wants them: one under the hand, the last one's end, and errors.
//
// After an error the stream panics: further errors are swallowed until somebody has skipped to a place where parsing
// can go on (`calm`). So one mistake gives one diagnostic.
#pragma once

#include <string>
#include <string_view>

#include "source/diagnostic.h"
#include "syntax/lexer.h"

namespace espy::syntax {

class TokenStream {
 public:
  TokenStream(const source::Sources& sources, source::SourceId source, const std::vector<HiddenRange>* hidden,
              source::Diagnostics& diagnostics);

  const Token& token() const { return token_; }
  // The lexer behind the current token, for looking ahead.
  const Lexer& lexer() const { return lexer_; }
  Token peek() const;
  std::string_view source_text() const { return text_; }
  std::string_view text(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }
  std::string_view text() const { return text(token_); }
  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_word(std::string_view word) const { return at(TokenKind::kIdentifier) && text() == word; }
  bool at_end() const { return at(TokenKind::kEnd); }

  // Moves on by one token and returns the one left behind.
  Token advance();
  bool accept(TokenKind kind);
  bool accept_word(std::string_view word);
  // Reads on from the byte at `offset`.
  void seek(uint32_t offset);
  // As `accept`, but says what is missing: "expected `)` after the arguments, found `;`".
  bool expect(TokenKind kind, std::string_view what, std::string_view hint = {});
  // Skips to the token after the bracket that closes the one at hand.
  void skip_balanced();

  source::Span span(uint32_t begin, uint32_t end) const { return {source_, begin, end}; }
  source::Span span(const Token& token) const { return span(token.begin, token.end); }
  // From `begin` to the end of the last token taken.
  source::Span span_from(uint32_t begin) const { return span(begin, last_end_ > begin ? last_end_ : begin); }
  // The current token; at the end of the script, where there is nothing to underline, the last byte before it.
  source::Span here() const;
  uint32_t last_end() const { return last_end_; }

  // Reports and panics; nullptr if panicking already, or if there were so many errors that more would help nobody.
  source::Diagnostic* error(std::string_view id, source::Span span, std::string message, std::string hint = {});
  // "expected WHAT, found `x`" at the current token, or what is wrong with that token itself.
  source::Diagnostic* unexpected(std::string_view what, std::string hint = {});
  // Reports without panicking, for mistakes that do not disturb the parse.
  void remark(std::string_view id, source::Span span, std::string message, std::string hint = {});
  bool ok() const { return !panic_; }
  void calm() { panic_ = false; }
  // Did a string or a comment without an end swallow text that may have held brackets?
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
