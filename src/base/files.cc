#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/end_request.h"
#include "base/strings.h"
#include "base/untrusted_file.h"

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

// How long espy waits for a reader that does not read, after the end of the run was requested. Later readers, such as
// the reader of stderr after the reader of stdout, get the second time.
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
    return fail("cannot write: the reader has not read for a second after the signal", ETIMEDOUT,
                "espy dropped the remaining output");
  }
  return {};
}

Result<std::string> read_to_end(int fd, const std::string& name, uint64_t limit_bytes) {
  std::string out;
  for (;;) {
    const size_t used = out.size();
    const size_t chunk_bytes = std::clamp<size_t>(used, 4 * 1024, 64 * 1024);  // most files of the kernel are short
    out.resize(used + chunk_bytes);
    const ssize_t got = ::read(fd, out.data() + used, chunk_bytes);
    if (got < 0 && errno != EINTR) return fail_errno("cannot read " + name, errno);
    out.resize(used + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got == 0 || out.size() > limit_bytes) return out;
  }
}

namespace {

// Where the link leads; "" if it is in procfs, whose links belong to no directory that others can change.
Result<std::string> target_of(const OwnedFd& link, const std::string& path) {
  struct statfs where = {};
  if (::fstatfs(link.get(), &where) == 0 && where.f_type == PROC_SUPER_MAGIC) return "";
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(link.get(), "", target, sizeof(target));
  if (size < 0) return fail_errno("cannot write to " + path, errno);
  std::string out(target, static_cast<size_t>(size));
  if (out.starts_with('/')) return out;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? out : path.substr(0, slash + 1) + out;
}

}  // namespace

Result<OwnedFd> open_output(const std::string& path, int flags, mode_t mode) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    OwnedFd file(::open(at.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.valid()) return file;
    if (errno != ELOOP) break;
    const OwnedFd link(::open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat state = {};
    if (!link.valid() || ::fstat(link.get(), &state) != 0) break;
    if (!S_ISLNK(state.st_mode)) continue;  // another one by now
    if (state.st_uid != 0 && state.st_uid != ::geteuid())
      return fail(fmt::format("cannot write to {}: {} is a symbolic link of user {}", path, at, state.st_uid), 0,
                  "name the file that it leads to");
    const std::string target = TRY(target_of(link, at));
    if (target.empty()) {
      OwnedFd behind(::open(at.c_str(), flags | O_CLOEXEC, mode));
      if (!behind.valid()) break;
      return behind;
    }
    at = target;
  }
  return fail_errno("cannot write to " + path, errno);
}

std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = split(line, ' ');
  const auto end = std::ranges::find(fields, std::string_view("-"));
  if (end - fields.begin() < 5 || end == fields.end() || end + 1 == fields.end()) return std::nullopt;
  const auto device = split(fields[2], ':');
  const auto id = parse_int(fields[0]);
  const auto major_number = parse_int(device.front()), minor_number = parse_int(device.back());
  if (!id || device.size() != 2 || !major_number || !minor_number) return std::nullopt;
  return Mount{static_cast<uint64_t>(*id),
               makedev(static_cast<unsigned>(*major_number), static_cast<unsigned>(*minor_number)), fields[4], end[1]};
}

}  // namespace espy
