#include "base/read_to_end.h"

#include <unistd.h>

#include <cerrno>

namespace espy {

Result<std::string> read_to_end(int fd, const std::string& name, uint64_t limit_bytes) {
  std::string out;
  constexpr size_t kChunkBytes = 65536;
  for (;;) {
    const size_t used = out.size();
    out.resize(used + kChunkBytes);
    const ssize_t got = ::read(fd, out.data() + used, kChunkBytes);
    if (got < 0 && errno != EINTR) return fail_errno("cannot read " + name, errno);
    out.resize(used + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got == 0 || out.size() > limit_bytes) return out;
  }
}

}  // namespace espy
