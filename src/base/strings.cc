#include "base/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

namespace espy {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  size_t start = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator, start)) {
    out.push_back(text.substr(start, at - start));
    start = at + 1;
  }
  out.push_back(text.substr(start));
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::optional<int64_t> parse_int(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (negative && value > uint64_t{1} << 63) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - value : value);
}

std::optional<uint64_t> take_number(std::string_view& text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::string fill(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  constexpr std::string_view kOpen = "{{", kClose = "}}";
  std::string out;
  for (size_t begin = text.find(kOpen); begin != text.npos; begin = text.find(kOpen)) {
    out += text.substr(0, begin);
    text.remove_prefix(begin + kOpen.size());
    const size_t end = text.find(kClose);
    const auto* value =
        std::ranges::find(values, text.substr(0, end), &std::pair<std::string_view, std::string_view>::first);
    if (end == text.npos || value == values.end()) {
      out += kOpen;
      continue;
    }
    out += value->second;
    text.remove_prefix(end + kClose.size());
  }
  return out += text;
}

namespace {

// Returns the index after the `]` of the class that opens at pattern[at], or 0 if it is not closed. A `]` as the first
// character of a class is literal: `[]]`.
size_t class_end(std::string_view pattern, size_t at) {
  size_t first = at + 1;
  if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) ++first;
  const size_t close = pattern.find(']', first + 1);
  return close == std::string_view::npos ? 0 : close + 1;
}

// Whether `c` is in the class pattern[at, end).
bool class_match(std::string_view pattern, size_t at, size_t end, char c) {
  size_t i = at + 1;
  const size_t close = end - 1;
  const bool negated = pattern[i] == '!' || pattern[i] == '^';
  if (negated) ++i;
  const auto code = [](char x) { return static_cast<unsigned char>(x); };
  bool matched = false;
  while (i < close) {
    if (i + 2 < close && pattern[i + 1] == '-') {
      matched |= code(pattern[i]) <= code(c) && code(c) <= code(pattern[i + 2]);
      i += 3;
    } else {
      matched |= pattern[i++] == c;
    }
  }
  return matched != negated;
}

// Matches `c` against the character, `?` or class at pattern[at]. Returns the index after that, or 0 if it does not
// match. A `[` that is not closed is literal.
size_t match_one(std::string_view pattern, size_t at, char c) {
  if (at >= pattern.size()) return 0;
  const size_t end = pattern[at] == '[' ? class_end(pattern, at) : 0;
  if (end != 0) return class_match(pattern, at, end, c) ? end : 0;
  return pattern[at] == '?' || pattern[at] == c ? at + 1 : 0;
}

}  // namespace

// After a mismatch only the last `*` is extended: extending an earlier one cannot match more.
bool glob_match(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, t = 0, star = kNone, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (const size_t after = match_one(pattern, p, text[t]); after != 0) {
      p = after;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?[") != std::string_view::npos; }

namespace {

// The Damerau-Levenshtein distance (insertions, deletions, substitutions, transpositions of neighbours).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string lower = to_lower(word);
  // One error is allowed also in a word of two letters, but not in one of a single letter, which is near to any.
  size_t best_distance = word.size() < 2 ? 1 : std::max<size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string_view candidate : candidates) {
    const size_t longer = std::max(candidate.size(), word.size());
    if (longer - std::min(candidate.size(), word.size()) >= best_distance) continue;
    const size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void append_decimal(std::string& out, uint64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_decimal(std::string& out, int64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_decimal(std::string& out, uint64_t number, size_t digits) {
  const fmt::format_int text(number);
  if (text.size() < digits) out.append(digits - text.size(), '0');
  out.append(text.data(), text.size());
}

namespace {

struct Escape {
  char character;
  std::string_view text;
};

constexpr Escape kEscapes[] = {{'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}, {'"', "\\\""}, {'\\', "\\\\"}};
constexpr Escape kMarkupEscapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\n', " "}};

// Returns false if the table does not have the character.
bool append_escape(std::string& out, char c, std::span<const Escape> table) {
  const auto found = std::ranges::find(table, c, &Escape::character);
  if (found != table.end()) out += found->text;
  return found != table.end();
}

void append_byte(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

void append_byte_escape(std::string& out, char c) {
  out += "\\x";
  append_byte(out, c);
}

bool is_ascii_printable(char c) { return c >= ' ' && c <= '~'; }

bool is_plain(char c) { return is_ascii_printable(c) && c != '"' && c != '\\'; }

// The same of eight characters: whether a byte is less than n, or equal to one, is in its highest bit.
bool are_plain(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHighest = 0x8080808080808080;
  const auto below = [](uint64_t from, uint64_t n) { return (from - n * kOnes) & ~from; };
  const auto equals = [&](char c) { return below(bytes ^ static_cast<uint64_t>(c) * kOnes, 1); };
  return ((bytes | below(bytes, ' ') | equals('"') | equals('\\') | equals('\x7f')) & kHighest) == 0;
}

size_t plain_length(std::string_view text) {
  size_t length = 0;
  for (uint64_t bytes = 0; text.size() - length >= sizeof(bytes); length += sizeof(bytes)) {
    std::memcpy(&bytes, text.data() + length, sizeof(bytes));
    if (!are_plain(bytes)) break;
  }
  while (length < text.size() && is_plain(text[length])) ++length;
  return length;
}

// Appends the first character of `text` as a part of a JSON string. Returns how many bytes the character has.
size_t append_json_character(std::string& out, std::string_view text) {
  if (append_escape(out, text[0], kEscapes)) return 1;
  const size_t length = utf8_length(text);
  const auto byte = static_cast<unsigned char>(text[0]);
  const auto append_code = [&](char c) {
    out += "\\u00";
    append_byte(out, c);
  };
  if (length == 0)
    append_byte_escape(out += '\\', text[0]);
  else if (byte < 0x20)
    append_code(text[0]);
  else if (byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0)  // a control character, whose code it is
    append_code(text[1]);
  else
    out += text.substr(0, length);
  return std::max<size_t>(length, 1);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (append_escape(out, c, kEscapes)) continue;
    if (is_ascii_printable(c))
      out += c;
    else
      append_byte_escape(out, c);
  }
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t plain = plain_length(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (!text.empty()) text.remove_prefix(append_json_character(out, text));
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string escape_markup(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd", kNoCharacters[] = {"\xef\xbf\xbe", "\xef\xbf\xbf"};
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length);
    const bool is_allowed = static_cast<unsigned char>(text[0]) >= 0x20 && length > 0 &&
                            std::ranges::find(kNoCharacters, character) == std::end(kNoCharacters);
    if (!append_escape(out, text[0], kMarkupEscapes)) out += is_allowed ? character : kReplacement;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string escape_characters(std::string_view text, std::string_view special, std::string_view before) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != special.npos) out += before;
    out += c;
  }
  return out;
}

std::string escaped(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (is_ascii_printable(bytes[i]) && !looks_escaped(bytes.substr(i)))
      out += bytes[i];
    else
      append_byte_escape(out, bytes[i]);
  }
  return out;
}

std::string all_escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_byte_escape(out, c);
  return out;
}

std::string hexadecimal(std::string_view bytes, std::string_view separator) {
  std::string out;
  for (const char c : bytes) {
    if (!out.empty()) out += separator;
    append_byte(out, c);
  }
  return out;
}

namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// The C1 controls; zero-width and bidirectional formatting; separators of lines; interlinear and tag characters.
constexpr Range kHidden[] = {{0x80, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},  {0x2028, 0x202e},
                             {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

// The character that the first `size` bytes of `text` encode.
uint32_t code_of(std::string_view text, size_t size) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (size == 1) return first;
  uint32_t code = first & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  return code;
}

bool holds(const Range& range, uint32_t code) { return code >= range.first && code <= range.last; }

// Returns the number of bytes of the character at the front that can be shown; 0 if it cannot.
size_t shown_bytes(std::string_view text, std::string_view blanks) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return (first >= 0x20 && first != 0x7f) || blanks.find(text[0]) != blanks.npos ? 1 : 0;
  const size_t size = utf8_length(text);
  if (size == 0) return 0;
  const uint32_t code = code_of(text, size);
  return std::ranges::any_of(kHidden, [&](const Range& range) { return holds(range, code); }) ? 0 : size;
}

// `blanks`: the control characters that stay.
std::string printable(std::string_view text, std::string_view blanks) {
  std::string out;
  size_t shown = 0;  // of the front of `text`
  while (shown < text.size()) {
    const size_t next = shown_bytes(text.substr(shown), blanks);
    shown += next;
    if (next > 0) continue;
    out += fmt::format("{}\\x{:02x}", text.substr(0, shown), static_cast<unsigned char>(text[shown]));
    text.remove_prefix(shown + 1);
    shown = 0;
  }
  return out += text;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by size: else it is longer than it need be
  constexpr Range kSurrogates = {0xd800, 0xdfff};
  const uint32_t code = code_of(text, size);
  return code < kSmallest[size] || code > 0x10ffff || holds(kSurrogates, code) ? 0 : size;
}

bool looks_escaped(std::string_view text) {
  const auto is_digit = [&](size_t at) {
    return (text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f');
  };
  return text.size() >= 4 && text[0] == '\\' && text[1] == 'x' && is_digit(2) && is_digit(3);
}

std::string exact_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length > 0 && !looks_escaped(text))
      out += text.substr(0, length);
    else
      append_byte_escape(out, text[0]);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string printable(std::string_view text) { return printable(text, "\n\t"); }

std::string printable_line(std::string_view text) { return printable(text, ""); }

Result<Regex> Regex::compile(const std::string& pattern) {
  auto regex = std::make_unique<regex_t>();
  if (const int code = ::regcomp(regex.get(), pattern.c_str(), REG_EXTENDED | REG_NOSUB); code != 0) {
    char reason[128] = {};
    ::regerror(code, regex.get(), reason, sizeof(reason));
    return fail("`" + pattern + "` is not a regular expression: " + reason);
  }
  return Regex(std::unique_ptr<regex_t, Free>(regex.release()));
}

}  // namespace espy
