#include "watch/interval_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"

namespace espy::watch {

namespace {

timespec to_timespec(uint64_t ns) {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

}  // namespace

Result<OwnedFd> make_timer(uint64_t first_ns, uint64_t interval_ns) {
  OwnedFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const itimerspec times = {to_timespec(interval_ns), to_timespec(first_ns)};
  if (!timer.valid() || ::timerfd_settime(timer.get(), 0, &times, nullptr) != 0)
    return fail_errno("cannot make a timer", errno);
  return timer;
}

bool take_tick(int timer) {
  uint64_t count = 0;
  return ::read(timer, &count, sizeof(count)) == sizeof(count);
}

}  // namespace espy::watch
