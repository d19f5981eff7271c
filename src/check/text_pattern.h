// Patterns of the operator `~`. They have the form of patterns in attach points (base/strings.h). Programs match them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace espy::check {

// An automaton with a state for each number of symbols that are matched: a symbol is a character, `?` or a set. It is
// in several states at a time, which are the bits of a number; at first it is in state 0. A character takes it from
// `states` to `((states & accepted[character]) << 1) | (states & repeated)`. The text matches if the automaton is in
// state `symbols` at the end.
struct TextPattern {
  static constexpr uint32_t kMostSymbols = 62;

  std::array<uint64_t, 256> accepted = {};  // by character: the states whose next symbol it is
  uint64_t repeated = 0;                    // the states in which a `*` follows
  uint32_t symbols = 0;
  bool ends_open = false;  // the only `*` is at the end, so that the rest of a text does not matter

  // nullopt if the pattern has too many symbols.
  static std::optional<TextPattern> parse(std::string_view pattern);
};

}  // namespace espy::check
