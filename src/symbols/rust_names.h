// The two mangling schemes of Rust, and what they share. Internal to symbols/; others use demangle.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espy::symbols {

// Demangle what follows `_ZN` and `_R`; "" if it is not of that scheme.
std::string demangle_rust_legacy(std::string_view rest);
std::string demangle_rust_v0(std::string_view rest);

constexpr size_t kMaxDemangledBytes = 64 * 1024;

// Bounds what the long readable forms of short names take all together: a file can have thousands of names of 100 bytes
// that stand for 50 KB each, and a stack has a hundred functions. One for each thread.
class LongNames {
 public:
  // Returns how long the readable form of a name may be.
  static size_t most_bytes(size_t mangled_bytes) {
    return left_bytes() > 0 ? kMaxDemangledBytes : std::min(kMaxDemangledBytes, mangled_bytes * kOrdinaryTimes);
  }
  // Counts a readable form that was made, even if it is not used.
  static void count(size_t mangled_bytes, size_t made_bytes) {
    const size_t ordinary_bytes = mangled_bytes * kOrdinaryTimes;
    if (made_bytes > ordinary_bytes) left_bytes() -= std::min(left_bytes(), made_bytes - ordinary_bytes);
  }

 private:
  static constexpr size_t kOrdinaryTimes = 16;  // as long as the name: compilers' names stay below it
  static size_t& left_bytes() {
    static thread_local size_t out = 128 << 20;
    return out;
  }
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

void append_utf8(std::string& out, uint32_t character);

// Returns the part of a suffix from a compiler pass that is shown: `.cold` and the like, but not `.llvm.HASH`.
std::string_view visible_suffix(std::string_view suffix);

}  // namespace espy::symbols
