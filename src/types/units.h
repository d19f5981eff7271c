// Units of the values of maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espy::types {

enum class Unit : uint8_t { kNone, kBytes, kNanoseconds, kMicroseconds, kMilliseconds, kSeconds };

// Returns the unit that the last word of a name tells: bytes of "@read_bytes", nanoseconds of "@ns" and "@wait_nsecs".
Unit unit_of(std::string_view name);

// Returns the unit that a word stands for: "ns", "bytes", "s"; nullopt for other words.
std::optional<Unit> unit_named(std::string_view word);

// "nanoseconds"; "" for none.
std::string_view long_name(Unit unit);

// Returns the name of a map without its `@`; `otherwise` for `@`.
std::string plain_name(std::string_view map_name, std::string_view otherwise);

}  // namespace espy::types
