// Reading clocks.
#pragma once

#include <time.h>

#include <cstdint>

namespace espy {

inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Returns how much clock_gettime(2) adds to the kernel's CLOCK_MONOTONIC or CLOCK_BOOTTIME in the time namespace of
// this process (time_namespaces(7)), in nanoseconds; 0 for other clocks.
int64_t time_namespace_offset_ns(clockid_t clock);

// Returns the time of a clock of clock_gettime(2), in nanoseconds, as BPF programs and the kernel's events have it:
// without the offset of a time namespace.
uint64_t clock_ns(clockid_t clock);

}  // namespace espy
