#include "base/result.h"

#include <cstring>

namespace espy {

tl::unexpected<Error> fail_errno(std::string what, int code, std::string hint) {
  return fail(std::move(what) + ": " + std::strerror(code), code, std::move(hint));
}

}  // namespace espy
