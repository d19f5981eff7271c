#include "base/limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string_view>

#include "base/fatal.h"
#include "base/files.h"

namespace espy {

namespace {

constexpr int kCallsPerLook = 16;

}  // namespace

std::chrono::nanoseconds thread_cpu_time() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

thread_local TimeLimit* TimeLimit::current_ = nullptr;

TimeLimit::TimeLimit(Duration most)
    : outer_(current_), end_(thread_cpu_time() + most), look_at_(std::chrono::steady_clock::now() + most) {
  if (outer_ != nullptr && outer_->end_ < end_) {
    end_ = outer_->end_;
    look_at_ = outer_->look_at_;
  }
  current_ = this;
}

TimeLimit::~TimeLimit() { current_ = outer_; }

void TimeLimit::look() {
  calls_left_ = kCallsPerLook;
  const auto now = std::chrono::steady_clock::now();
  if (now < look_at_) return;
  const Duration left = end_ - thread_cpu_time();
  if (left <= Duration::zero()) throw TookTooLong();
  look_at_ = now + left;
}

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
  // An outer MemoryLimit, or the process that started espy, may have set a lower limit.
  if (earlier_.rlim_cur < wanted.rlim_cur) ::setrlimit(RLIMIT_DATA, &earlier_);
}

MemoryLimit::~MemoryLimit() {
  if (is_set_) ::setrlimit(RLIMIT_DATA, &earlier_);
}

namespace {

// Whether the exception that ends the program is std::bad_alloc. There is none if there was no memory for it either.
bool is_out_of_memory() {
  const std::exception_ptr current = std::current_exception();
  if (current == nullptr) return true;
  try {
    std::rethrow_exception(current);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void on_terminate() {
  if (!is_out_of_memory()) std::abort();
  report_out_of_memory();
  ::_exit(EXIT_FAILURE);
}

}  // namespace

void report_out_of_memory() {
  constexpr std::string_view kText =
      "espy: out of memory\n"
      "  hint: `ulimit -v` and memory.max of the cgroup (MemoryMax in systemd) show the limits; lower max_map_keys, "
      "perf_rb_pages or unwind_table_rows to use less memory\n";
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kText.data(), kText.size());
}

void report_uncaught_out_of_memory() { std::set_terminate(on_terminate); }

}  // namespace espy
