#include "check/text_pattern.h"

#include <string>

#include "base/strings.h"

namespace espy::check {

namespace {

// The length of the symbol at the beginning: of a set with its brackets, else 1.
size_t symbol_length(std::string_view pattern) {
  if (pattern[0] != '[') return 1;
  const size_t first = pattern.starts_with("[!") || pattern.starts_with("[^") ? 3 : 2;  // a `]` there is in the set
  const size_t close = pattern.find(']', first);
  return close == std::string_view::npos ? 1 : close + 1;
}

}  // namespace

std::optional<TextPattern> TextPattern::parse(std::string_view pattern) {
  TextPattern out;
  const size_t first_star = pattern.find('*');
  out.ends_open = first_star != std::string_view::npos && first_star + 1 == pattern.size();
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      out.repeated |= uint64_t{1} << out.symbols;
      pattern.remove_prefix(1);
      continue;
    }
    if (out.symbols == kMostSymbols) return std::nullopt;
    const std::string_view symbol = pattern.substr(0, symbol_length(pattern));
    for (size_t c = 1; c < out.accepted.size(); ++c)
      if (glob_match(symbol, std::string(1, static_cast<char>(c)))) out.accepted[c] |= uint64_t{1} << out.symbols;
    ++out.symbols;
    pattern.remove_prefix(symbol.size());
  }
  return out;
}

}  // namespace espy::check
