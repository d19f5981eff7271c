// Tokens: from text to the tokens that parsers read, and the values of literals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "source/diagnostic.h"

namespace espy::syntax {

// ---- Tokens of the language.
//
// A token is a kind and a position; its text stays in the source. Keywords are identifiers, because each of them can
// also name a member (`args.return`); the parser distinguishes them by context.

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,
  kInteger,  // a digit and every letter, digit and `_` after it: 10ms, 0xff, 2e3, 1ull
  kString,   // with its quotes
  kUnterminatedString,
  kCharacter,  // 'a': only in C constants
  kVariable,   // $x
  kMap,        // @x, @
  kPositional,
  kPositionalCount,
  kUnterminatedComment,
  kUnknown,
  kHash,
  kLeftParen,
  kRightParen,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kComma,
  kSemicolon,
  kColon,
  kQuestion,
  kDot,
  kDotDot,
  kEllipsis,
  kArrow,
  kNot,
  kBitNot,
  kIncrement,
  kDecrement,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kPercent,
  kAmpersand,
  kPipe,
  kCaret,
  kShiftLeft,
  kShiftRight,
  kLogicalAnd,
  kLogicalOr,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAssign,
  kPlusAssign,
  kMinusAssign,
  kStarAssign,
  kSlashAssign,
  kPercentAssign,
  kAmpersandAssign,
  kPipeAssign,
  kCaretAssign,
  kShiftLeftAssign,
  kShiftRightAssign,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool after_newline = false;  // the first token on its line
  uint32_t begin = 0;
  uint32_t end = 0;
};

// ---- Values of literals: numbers and strings.

struct IntegerValue {
  enum class Problem : uint8_t { kNone, kOutOfRange, kMalformed };
  uint64_t value = 0;  // of a duration: nanoseconds
  bool is_duration = false;
  Problem problem = Problem::kNone;
};

// Parses decimal, 0 octal, 0x hex, 2e3; `_` between digits; then C's u and l in any order, or one of ns us ms s m h d.
IntegerValue read_integer(std::string_view text);

struct StringValue {
  std::string value;
  std::optional<uint32_t> bad_escape;  // the offset in `text` of the first backslash that begins no escape
};

// Parses a string literal given without its quotes: \n \t \r \" \\ \0nn (up to three octal digits) \xnn. An invalid
// escape is kept as it is.
StringValue read_string(std::string_view text);

// ---- Splits text into tokens, one at a time.
//
// Total: every byte sequence has tokens, and errors are token kinds. A lexer is a text and a position, so a copy serves
// as lookahead. Attach points follow other rules; the parser reads them from the text (parse_statement.cc) and then
// moves the lexer past them.

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

// ---- The tokens of one source for a parser: the current token, the end of the last one, and error reporting.
//
// After an error the stream panics: it drops further errors until the parser has skipped to a place from which it can
// continue and calls `calm`. So each mistake gives one diagnostic.

class TokenStream {
 public:
  TokenStream(const source::Sources& sources, source::SourceId source, const std::vector<HiddenRange>* hidden,
              source::Diagnostics& diagnostics);

  const Token& token() const { return token_; }
  // Returns the lexer, positioned after the current token, for lookahead.
  const Lexer& lexer() const { return lexer_; }
  Token peek() const;
  // For lookahead: if `token`, the last one of `lexer`, begins `::NAME`, moves both after it and returns true.
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

// ---- Characters that editors and web pages put instead of characters of the language.

// Returns "this is U+00A0, a no-break space: type a space" for text that begins with such a character; "" for other
// text.
std::string foreign_character(std::string_view text);

}  // namespace espy::syntax
