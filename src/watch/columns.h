// Text in the columns of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espy::watch {

// Returns how many columns a text takes: two for wide characters, none for those that combine with the one before.
// Bytes that are not UTF-8, and control characters, count as one; `printable_line` leaves none.
size_t columns_of(std::string_view text);

// Returns as much of the front of `text` as fits `columns`.
std::string_view cut(std::string_view text, size_t columns);

// Returns `text` with exactly `columns`: cut, or followed or preceded by blanks.
std::string left_aligned(std::string_view text, size_t columns);
std::string right_aligned(std::string_view text, size_t columns);

}  // namespace espy::watch
