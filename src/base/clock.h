// Reading clocks.
#pragma once

#include <time.h>

#include <cstdint>

namespace espy {

inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Returns the time of a clock of clock_gettime(2), in nanoseconds.
uint64_t clock_ns(clockid_t clock);

}  // namespace espy
