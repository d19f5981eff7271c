#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/end_request.h"
#include "base/foreign_file.h"
#include "base/read_to_end.h"

namespace espy {

void OwnedFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool is_file(const std::string& path) {
  if (is_behind_foreign_mount(path)) return identity_of(path).has_value();
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<std::string> read_file(const std::string& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open " + path, errno);
  return read_to_end(fd.get(), path);
}

Result<std::string> read_start_of_file(const std::string& path, size_t max_bytes) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open " + path, errno);
  std::string out;
  char chunk[4 * 1024];
  while (out.size() < max_bytes) {
    const ssize_t got = ::read(fd.get(), chunk, std::min(sizeof(chunk), max_bytes - out.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) return fail_errno("cannot read " + path, errno);
    if (got <= 0) break;
    out.append(chunk, static_cast<size_t>(got));
  }
  return out;
}

namespace {

// For a reader that does not read, once the end of the run is requested; and for the next ones, such as that of stderr
// behind that of stdout.
constexpr uint64_t kPatienceNs = 1'000'000'000, kNextPatienceNs = 100'000'000;

// The request after which a reader was waited for in vain, as end_requested_at_ns().
std::atomic<uint64_t> given_up_request_ns = 0;

void wait_until_writable(int fd) {
  pollfd waited = {fd, POLLOUT, 0};
  ::poll(&waited, 1, -1);
}

}  // namespace

// A signal interrupts a write that waits. The timer of runtime::Signals repeats that, for the signal that comes right
// before the call.
Status write_all(int fd, std::string_view bytes) {
  uint64_t waited_since_ns = 0;
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
      waited_since_ns = 0;
      continue;
    }
    if (errno == EAGAIN)
      wait_until_writable(fd);
    else if (errno != EINTR)
      return fail_errno("cannot write", errno);
    if (!is_end_requested()) continue;
    const uint64_t now_ns = monotonic_ns();
    if (waited_since_ns == 0) waited_since_ns = now_ns;
    const bool has_given_up = given_up_request_ns == end_requested_at_ns();
    if (now_ns - waited_since_ns < (has_given_up ? kNextPatienceNs : kPatienceNs)) continue;
    given_up_request_ns = end_requested_at_ns();
    return fail("cannot write: nobody has read for a second after the signal", ETIMEDOUT,
                "what was still to be written was dropped");
  }
  return {};
}

}  // namespace espy
