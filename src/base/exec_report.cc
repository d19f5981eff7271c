#include "base/exec_report.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace espy {

Result<ExecReport> ExecReport::make() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  return ExecReport(ends[0], ends[1]);
}

void ExecReport::exit_with(int code) {
  [[maybe_unused]] const ssize_t put = ::write(writing_.get(), &code, sizeof(code));
  ::_exit(127);
}

std::optional<int> ExecReport::wait(bool (*is_over)()) {
  constexpr int kLongestWaitMs = 100;  // a signal may come right before poll()
  pollfd waited = {reading_.get(), POLLIN, 0};
  while (::poll(&waited, 1, kLongestWaitMs) <= 0)
    if (is_over()) return std::nullopt;
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(reading_.get(), &code, sizeof(code))) < 0 && errno == EINTR) {
  }
  reading_.reset();
  return got == static_cast<ssize_t>(sizeof(code)) ? code : 0;
}

}  // namespace espy
