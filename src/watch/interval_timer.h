// A descriptor that is readable at each interval.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace espy::watch {

// The first time comes after `first_ns`, which must not be 0.
Result<OwnedFd> make_timer(uint64_t first_ns, uint64_t interval_ns);
// Returns whether an interval has passed since the last call.
bool take_tick(int timer);

}  // namespace espy::watch
