// CHECK: an assertion about espy itself. Errors in scripts are a Diagnostic, errors of the environment a Result.
#pragma once

namespace espy {

// Prints "espy: internal error in FILE:LINE: WHAT" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* what);

// ---- Whether this build has an address sanitizer, whose allocator and speed are its own.

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

}  // namespace espy

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) ::espy::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
#define UNREACHABLE(what) ::espy::check_failed(__FILE__, __LINE__, what)
