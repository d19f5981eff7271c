#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace espy {

void OwnedFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool is_file(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<std::string> read_file(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open " + path, errno);
  std::string out;
  constexpr size_t kChunkBytes = 65536;
  for (;;) {
    const size_t used = out.size();
    out.resize(used + kChunkBytes);
    const ssize_t got = ::read(fd.get(), out.data() + used, kChunkBytes);
    if (got < 0 && errno == EINTR) {
      out.resize(used);
      continue;
    }
    if (got < 0) return fail_errno("cannot read " + path, errno);
    out.resize(used + static_cast<size_t>(got));
    if (got == 0) return out;
  }
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno("cannot write", errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

}  // namespace espy
