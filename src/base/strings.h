// Text: functions on strings, escapes, text from outside made printable, and regular expressions.
#pragma once

#include <regex.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace espy {

// ---- String functions.

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string to_lower(std::string_view text);

// Parses the whole text as an integer: decimal, hex (0x) or octal (0), with an optional sign. nullopt if it is
// malformed or does not fit 64 bits. An unsigned value above INT64_MAX wraps: 0xffff'ffff'ffff'ffff is -1.
std::optional<int64_t> parse_int(std::string_view text);

// Removes the number at the front of `text` and returns it; nullopt, and `text` unchanged, if there is none or it does
// not fit. Takes neither a sign nor a prefix such as 0x.
std::optional<uint64_t> take_number(std::string_view& text, int base);

// Returns the part after the last slash; the whole path if there is none.
inline std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Replaces each `{{NAME}}` by the value of that name. Values, and names that are none of these, stay as they are.
std::string fill(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string_view>> values);

// Matches the whole text against a glob as of the shell: `*`, `?`, `[a-z]`, and `[!a-z]` or `[^a-z]`.
bool glob_match(std::string_view pattern, std::string_view text);
bool has_wildcard(std::string_view pattern);

// Returns the candidate nearest to `word` for a "did you mean", or "" if none is near. Near is an edit distance of a
// third of the length of the word, and at least one, ignoring case.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

// ---- Numbers and columns that are appended to a text, without strings of their own.

void append_decimal(std::string& out, uint64_t number);
void append_decimal(std::string& out, int64_t number);
// With zeros in front up to `digits`.
void append_decimal(std::string& out, uint64_t number, size_t digits);

// Appends blanks until `out` has `width` bytes from `start` on.
inline void fill_up(std::string& out, size_t start, size_t width) {
  const size_t used = out.size() - start;
  if (used < width) out.append(width - used, ' ');
}

// ---- Escapes: text and bytes as a part of another language. Names may hold any bytes, so all that espy writes for
// other readers passes one of these functions.

// Escapes text for a string literal: \n \t \r \" \\ and \xNN.
std::string escape(std::string_view text);

// Returns a JSON string, quoted and escaped. A byte that is not UTF-8 is the text `\xNN`, as exact_utf8() has it.
std::string json_string(std::string_view text);
// Appends the same to `out`.
void append_json_string(std::string& out, std::string_view text);

// Escapes text for the content and the attributes of XML and HTML. Characters that XML does not allow, and bytes that
// are not UTF-8, become U+FFFD; a newline becomes a blank.
std::string escape_markup(std::string_view text);

// Puts `before` in front of each of the `special` characters.
std::string escape_characters(std::string_view text, std::string_view special, std::string_view before = "\\");

// Returns bytes as text: printable ASCII unchanged, other bytes, and a backslash that begins `\xNN`, as `\xNN`.
std::string escaped(std::string_view bytes);

// Returns every byte as `\xNN`.
std::string all_escaped(std::string_view bytes);

// Returns two hexadecimal digits for each byte, with `separator` between bytes.
std::string hexadecimal(std::string_view bytes, std::string_view separator = "");

// ---- Text from outside, for a terminal.

// Returns `text` with each byte as `\xNN` that is a control character, belongs to an invisible or direction-changing
// one, or is not UTF-8. A newline and a tab stay.
std::string printable(std::string_view text);

// The same for a part of a line: a newline and a tab are escaped, too.
std::string printable_line(std::string_view text);

// Returns `text` as UTF-8 that no other text has: bytes that are not UTF-8 become `\xNN`, and a backslash in front of
// what looks so, `\x5c`. Different texts stay different in printable_line() of this, too. Not to be applied twice.
std::string exact_utf8(std::string_view text);

// Whether a backslash is at the front of `text` that begins `\xNN`, with digits as these functions write them.
bool looks_escaped(std::string_view text);

// Returns the number of bytes of the UTF-8 character at the front of `text`; 0 if there is none. Requires a text that
// is not empty.
size_t utf8_length(std::string_view text);

// ---- A POSIX extended regular expression.

class Regex {
 public:
  static Result<Regex> compile(const std::string& pattern);
  bool matches_somewhere(const std::string& text) const {
    return ::regexec(&*compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  struct Free {
    void operator()(regex_t* regex) const {
      ::regfree(regex);
      delete regex;
    }
  };
  explicit Regex(std::unique_ptr<regex_t, Free> compiled) : compiled_(std::move(compiled)) {}
  std::unique_ptr<regex_t, Free> compiled_;
};

}  // namespace espy
