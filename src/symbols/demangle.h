// Demangling of C++ (Itanium ABI), Rust legacy and Rust v0 symbol names.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace espy::symbols {

// ---- The two mangling schemes of Rust, and what they share. Internal to symbols/; others use demangle.h.

// Demangle what follows `_ZN` and `_R`; "" if it is not of that scheme.
std::string demangle_rust_legacy(std::string_view rest);
std::string demangle_rust_v0(std::string_view rest);

constexpr size_t kMaxDemangledBytes = 64 * 1024;

// Limits the memory of the long readable forms of short names. A file can have thousands of names of 100 bytes that
// stand for 50 KB each, and a stack has a hundred functions. It grows again with time: a trace may meet one of them
// each second for weeks.
class LongNames {
 public:
  using Moment = WorkBudget<int64_t>::Moment;

  // One for each thread.
  static LongNames& of_thread() {
    static thread_local LongNames out;
    return out;
  }
  // Returns how long the readable form of a name may be.
  size_t most_bytes(size_t mangled_bytes, Moment now = Moment::clock::now()) {
    const bool may_be_long = budget_.left(now) >= int64_t{kMaxDemangledBytes};
    return may_be_long ? kMaxDemangledBytes : std::min(kMaxDemangledBytes, mangled_bytes * kOrdinaryTimes);
  }
  // Counts a readable form that was made, even if it is not used.
  void count(size_t mangled_bytes, size_t made_bytes, Moment now = Moment::clock::now()) {
    const size_t ordinary_bytes = mangled_bytes * kOrdinaryTimes;
    if (made_bytes > ordinary_bytes) budget_.take(static_cast<int64_t>(made_bytes - ordinary_bytes), now);
  }

 private:
  static constexpr size_t kOrdinaryTimes = 32;  // as long as the name: compilers' names stay below it

  WorkBudget<int64_t> budget_{128 << 20, 1 << 20};
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

void append_utf8(std::string& out, uint32_t character);

// Returns the part of a suffix from a compiler pass that is shown: `.cold` and the like, but not `.llvm.HASH`.
std::string_view visible_suffix(std::string_view suffix);

enum class DemangleStyle {
  kSignature,  // `ns::f(int, char const*)`; Rust names have no parameter list: `core::fmt::write`
  kOverload,   // without the return type, which only templates have: `ns::f<int>(int)`
  kName,       // without the return type, the parameter list and qualifiers: `ns::f`
};

// Returns the readable form of a symbol name. A name that is not mangled, malformed, longer than 64 KiB in its readable
// form, or takes more than milliseconds is returned unchanged. If a thread had too many long or slow names, this also
// applies to names whose readable form is more than 32 times as long, or that might take long.
std::string demangle(std::string_view mangled, DemangleStyle style = DemangleStyle::kSignature);

// Returns the name of a demangled signature: `ns::f<int>` of `void ns::f<int>(int) const`. Text without a parameter
// list (data, Rust) is returned unchanged.
std::string_view name_of_signature(std::string_view signature);

// Returns `ns::f` of `ns::f<int>` and, in Rust, of `ns::f::<i32>`. Other names are returned unchanged.
std::string_view without_template_arguments(std::string_view name);

// The same as `demangle` for names of Rust; "" for others. Hashes of crates and of instantiations are omitted. Output
// and time are bounded for any name.
std::string demangle_rust(std::string_view mangled);

}  // namespace espy::symbols
