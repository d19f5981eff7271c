// Small text tools that every room needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espy {

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string to_lower(std::string_view text);

// The whole text as an integer: decimal, 0x hex or 0 octal, with an optional sign. Nothing where it is not one, or
// does not fit 64 bits; without a sign, a value above int64's range comes back as its bits (0xffff'ffff'ffff'ffff is
// -1).
std::optional<int64_t> parse_int(std::string_view text);

// Removes the number at the front of `text` and returns it; nullopt, and `text` unchanged, if there is none or it does
// not fit. Takes neither a sign nor a prefix such as 0x.
std::optional<uint64_t> take_number(std::string_view& text, int base);

// `text` as it would be typed inside double quotes: \n \t \r \" \\ and \xNN.
std::string escape(std::string_view text);

// What is behind the last slash; the whole path where there is none.
inline std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Shell-like match: `*` any run, `?` any one, `[a-z]` a class, `[!a-z]` or `[^a-z]` its opposite. The whole text must
// match.
bool glob_match(std::string_view pattern, std::string_view text);
bool has_wildcard(std::string_view pattern);

// The candidate nearest to `word`, or "" if none is near enough to be what was meant
// (edit distance of at most a third of the word's length, or one, case aside).
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace espy
