#include "base/read_to_end.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace espy {

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

}  // namespace espy
