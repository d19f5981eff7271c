#include "base/clock.h"

namespace espy {

uint64_t clock_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace espy
