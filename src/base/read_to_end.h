// Reading an open file or pipe to its end.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace espy {

// Returns all bytes up to the end; stops once it has more than `limit_bytes`. `name` is for the error.
Result<std::string> read_to_end(int fd, const std::string& name, uint64_t limit_bytes = UINT64_MAX);

}  // namespace espy
