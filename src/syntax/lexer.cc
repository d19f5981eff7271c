#include "syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace espy::syntax {

namespace {

constexpr std::pair<std::string_view, uint64_t> kDurations[] = {
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000},
};

constexpr std::string_view kSuffixes[] = {"u", "l", "ul", "lu", "ll", "ull", "llu"};

// The value of `c` as a digit in any base up to 16, or 16.
unsigned digit_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return 16;
}

// Consumes digits of `base` from `text`; `count` is their number. Returns false if the value does not fit.
bool take_digits(std::string_view& text, unsigned base, uint64_t& value, size_t& count) {
  bool fits = true;
  while (!text.empty() && (text[0] == '_' || digit_value(text[0]) < base)) {
    if (text[0] != '_') {
      fits &= !__builtin_mul_overflow(value, base, &value);
      fits &= !__builtin_add_overflow(value, digit_value(text[0]), &value);
      ++count;
    }
    text.remove_prefix(1);
  }
  return fits;
}

bool scale_by_ten(uint64_t& value, uint64_t exponent) {
  for (; exponent > 0 && value != 0; --exponent) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value)) return false;
  }
  return true;
}

// Parses the suffix after the digits. Returns false if it is unknown.
bool apply_suffix(std::string_view suffix, IntegerValue& out) {
  if (suffix.empty()) return true;
  for (const auto& [name, nanoseconds] : kDurations) {
    if (suffix != name) continue;
    out.is_duration = true;
    if (__builtin_mul_overflow(out.value, nanoseconds, &out.value)) out.problem = IntegerValue::Problem::kOutOfRange;
    return true;
  }
  const std::string lower = to_lower(suffix);
  return std::find(std::begin(kSuffixes), std::end(kSuffixes), lower) != std::end(kSuffixes);
}

}  // namespace

IntegerValue read_integer(std::string_view text) {
  IntegerValue out;
  unsigned base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0' && (is_digit(text[1]) || text[1] == '_')) {
    base = 8;
  }
  size_t digits = 0;
  bool fits = take_digits(text, base, out.value, digits);
  bool well_formed = digits > 0;
  if (base == 10 && text.size() > 1 && (text[0] == 'e' || text[0] == 'E') && is_digit(text[1])) {
    text.remove_prefix(1);
    uint64_t exponent = 0;
    fits &= take_digits(text, 10, exponent, digits) && scale_by_ten(out.value, exponent);
  }
  well_formed &= apply_suffix(text, out);
  if (!fits) out.problem = IntegerValue::Problem::kOutOfRange;
  if (!well_formed) out.problem = IntegerValue::Problem::kMalformed;
  return out;
}

namespace {

// Reads up to `limit` digits of `base` at `i`. Returns how many there were.
size_t take_byte(std::string_view text, size_t i, size_t limit, unsigned base, std::string& out) {
  unsigned value = 0;
  size_t count = 0;
  while (count < limit && i + count < text.size() && digit_value(text[i + count]) < base) {
    value = value * base + digit_value(text[i + count]);
    ++count;
  }
  if (count > 0) out += static_cast<char>(value);
  return count;
}

// Reads the escape whose backslash is at `i`. Returns its length, or 0 if it is none.
size_t take_escape(std::string_view text, size_t i, std::string& out) {
  if (i + 1 >= text.size()) return 0;
  switch (text[i + 1]) {
    case 'n': out += '\n'; return 2;
    case 't': out += '\t'; return 2;
    case 'r': out += '\r'; return 2;
    case '"': out += '"'; return 2;
    case '\\': out += '\\'; return 2;
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7': return 1 + take_byte(text, i + 1, 3, 8, out);
    case 'x': {
      const size_t digits = take_byte(text, i + 2, 2, 16, out);
      return digits > 0 ? 2 + digits : 0;
    }
    default: return 0;
  }
}

}  // namespace

StringValue read_string(std::string_view text) {
  StringValue out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\\') {
      const size_t length = take_escape(text, i, out.value);
      if (length > 0) {
        i += length;
        continue;
      }
      if (!out.bad_escape) out.bad_escape = static_cast<uint32_t>(i);
    }
    out.value += text[i++];
  }
  return out;
}

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

std::string foreign_character(std::string_view text) {
  struct Row {
    std::string_view bytes, name, instead;
  };
  constexpr Row kRows[] = {{"\xef\xbb\xbf", "U+FEFF, a byte order mark", "remove it"},
                           {"\xc2\xa0", "U+00A0, a no-break space", "type a space"},
                           {"\xe2\x80\x9c", "U+201C, a typographic quote", "type \""},
                           {"\xe2\x80\x9d", "U+201D, a typographic quote", "type \""},
                           {"\xe2\x80\x98", "U+2018, a typographic quote", "type '"},
                           {"\xe2\x80\x99", "U+2019, a typographic quote", "type '"},
                           {"\xe2\x80\x93", "U+2013, a dash", "type -"},
                           {"\xe2\x80\x8b", "U+200B, a zero-width space", "remove it"}};
  for (const Row& row : kRows)
    if (text.starts_with(row.bytes)) return fmt::format("this is {}: {}", row.name, row.instead);
  return "";
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
  if (hint.empty() && at_word("and")) hint = "write `&&`";
  if (hint.empty() && at_word("or")) hint = "write `||`";
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
            text().starts_with('\'') ? "strings are written in double quotes"
                                     : foreign_character(source_text().substr(token_.begin)));
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
