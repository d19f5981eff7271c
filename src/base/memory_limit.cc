#include "base/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/fd.h"
#include "base/sanitizers.h"

namespace espy {

namespace {

rlim_t hard_limit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_DATA, &limit);
  return limit.rlim_max;
}

}  // namespace

// The sixth number of /proc/self/statm (proc(5)), in pages. The file stays open, as this is asked for each function
// whose debug information is read; a child would get the numbers of its parent.
uint64_t data_bytes() {
  static const OwnedFd file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  static const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  char text[256] = {};
  unsigned long pages = 0;
  if (!file.valid() || ::pread(file.get(), text, sizeof(text) - 1, 0) <= 0) return 0;
  return std::sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) == 1 ? pages * page_bytes : 0;
}

uint64_t MemoryLimit::taken_bytes() const {
  const uint64_t now = data_bytes();
  return now > begin_bytes_ ? now - begin_bytes_ : 0;
}

bool MemoryLimit::is_supported() { return !kHasAddressSanitizer; }

MemoryLimit::MemoryLimit(uint64_t more_bytes) : begin_bytes_(data_bytes()) {
  static const rlim_t most = hard_limit();
  const rlimit wanted = {std::min<rlim_t>(begin_bytes_ + more_bytes, most), most};
  if (!is_supported() || begin_bytes_ == 0 || ::prlimit(0, RLIMIT_DATA, &wanted, &earlier_) != 0) return;
  is_set_ = true;
  // That of an outer MemoryLimit, or of who started espy, may be lower.
  if (earlier_.rlim_cur < wanted.rlim_cur) ::setrlimit(RLIMIT_DATA, &earlier_);
}

MemoryLimit::~MemoryLimit() {
  if (is_set_) ::setrlimit(RLIMIT_DATA, &earlier_);
}

}  // namespace espy
