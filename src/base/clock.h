// Reading clocks.
#pragma once

#include <time.h>

#include <cstdint>

namespace espy {

// Returns the time of a clock of clock_gettime(2), in nanoseconds.
uint64_t clock_ns(clockid_t clock);

}  // namespace espy
