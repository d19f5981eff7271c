// base: what all modules use, such as results, strings, files, processes, limits. It knows nothing of tracing.
//
// Result<T>: a value, or an error of the environment.
#pragma once

#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace espy {

// `message` is one sentence for the user. `code` is an errno value, or 0.
struct Error {
  std::string message;
  int code = 0;
  std::string hint = {};  // how to fix it; may be empty
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

inline tl::unexpected<Error> fail(std::string message, int code = 0, std::string hint = {}) {
  return tl::unexpected<Error>(Error{std::move(message), code, std::move(hint)});
}

// The error "WHAT: strerror(code)".
inline tl::unexpected<Error> fail_errno(std::string what, int code, std::string hint = {}) {
  return fail(std::move(what) + ": " + std::strerror(code), code, std::move(hint));
}

}  // namespace espy

// Evaluates to the value of a Result, or returns its error from the enclosing function.
#define TRY(expression)                                                                     \
  __extension__({                                                                           \
    auto&& try_result = (expression);                                                       \
    if (!try_result) return ::tl::unexpected<::espy::Error>(std::move(try_result).error()); \
    std::move(*try_result);                                                                 \
  })

// The same for a Status, which has no value.
#define TRY_STATUS(expression)                                                              \
  do {                                                                                      \
    auto&& try_status = (expression);                                                       \
    if (!try_status) return ::tl::unexpected<::espy::Error>(std::move(try_status).error()); \
  } while (false)
