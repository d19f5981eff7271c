// Values of literals: numbers and strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espy::syntax {

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

}  // namespace espy::syntax
