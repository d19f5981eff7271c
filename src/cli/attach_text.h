// Attach points as words of the command line: quotes keep colons, commas and parentheses in a part, as in scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espy::cli {

// Returns the position of a character outside of quotes; npos if there is none.
size_t find_unquoted(std::string_view text, char wanted, size_t from = 0);

// Splits at each separator outside of quotes; the quotes remain.
std::vector<std::string> split_unquoted(std::string_view text, char separator);

// Splits an attach point into its parts, without their quotes.
std::vector<std::string> split_attach_point(std::string_view text);

}  // namespace espy::cli
