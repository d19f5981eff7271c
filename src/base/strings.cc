#include "base/strings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
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

std::string escape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      default:
        if (byte >= 0x20 && byte < 0x7f) {
          out += c;
        } else {
          out += "\\x";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        }
    }
  }
  return out;
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

}  // namespace espy
