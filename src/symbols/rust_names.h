// The two mangling schemes of Rust, and what they share. Internal to symbols/; others use demangle.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espy::symbols {

// Demangle what follows `_ZN` and `_R`; "" if it is not of that scheme.
std::string demangle_rust_legacy(std::string_view rest);
std::string demangle_rust_v0(std::string_view rest);

constexpr size_t kMaxDemangledBytes = 64 * 1024;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

void append_utf8(std::string& out, uint32_t character);

// Returns the part of a suffix from a compiler pass that is shown: `.cold` and the like, but not `.llvm.HASH`.
std::string_view visible_suffix(std::string_view suffix);

}  // namespace espy::symbols
