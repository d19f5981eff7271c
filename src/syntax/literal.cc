#include "syntax/literal.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "syntax/lexer.h"

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

}  // namespace espy::syntax
