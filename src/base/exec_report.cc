#include "base/exec_report.h"

#include <fcntl.h>
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

int ExecReport::wait() {
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(reading_.get(), &code, sizeof(code))) < 0 && errno == EINTR) {
  }
  reading_.reset();
  return got == static_cast<ssize_t>(sizeof(code)) ? code : 0;
}

}  // namespace espy
