#include "load/link_closer.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "base/janitor.h"

namespace espy::load {

// Jobs with equal places end together; so many are never open at a time.
struct LinkCloser::Progress {
  static constexpr size_t kPlaces = 1024;
  std::atomic<uint32_t> open[kPlaces] = {};  // descriptors of a job
  std::atomic<uint32_t>& of(uint64_t job) { return open[job % kPlaces]; }
};

namespace {

constexpr int kProcesses = 4;  // links of a script that are closed at a time; a script seldom has more

struct Order {
  int descriptor;
  uint32_t place;  // of its job
};

pid_t start_process() {
  return static_cast<pid_t>(::syscall(__NR_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// Requires to be in a child of `parent`.
void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
}

// In the first process, which starts the others. Each takes the next order that there is.
template <class Closed>
[[noreturn]] void close_all(int orders, pid_t parent, const Closed& closed) {
  block_all_signals();
  end_with(parent);
  ::setpriority(PRIO_PROCESS, 0, -20);  // what waits to be closed still takes time of others
  const pid_t first = ::getpid();
  for (int i = 1; i < kProcesses && ::getpid() == first; ++i)
    if (start_process() == 0) end_with(first);
  Order order = {};
  while (::read(orders, &order, sizeof(order)) == static_cast<ssize_t>(sizeof(order))) {
    ::close(order.descriptor);
    closed(order.place);
  }
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<LinkCloser>> LinkCloser::start() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  OwnedFd from(ends[0]), to(ends[1]);
  void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_errno("cannot share memory with a process", errno);
  auto* progress = new (memory) Progress;
  const pid_t parent = ::getpid();
  const pid_t child = start_process();
  if (child < 0) {
    const int code = errno;
    ::munmap(memory, sizeof(Progress));
    return fail_errno("cannot start a process that closes links", code);
  }
  // The table of descriptors is the same: the processes keep both ends of the pipe open.
  if (child == 0) close_all(from.get(), parent, [&](uint32_t place) { --progress->of(place); });
  return std::unique_ptr<LinkCloser>(new LinkCloser(std::move(from), std::move(to), progress, child));
}

// They may be in the middle of closing; nothing waits for them.
LinkCloser::~LinkCloser() {
  ::kill(process_, SIGKILL);
  ::munmap(progress_, sizeof(Progress));
}

std::optional<uint64_t> LinkCloser::close_soon(std::span<const int> descriptors) {
  const uint64_t job = ++jobs_;
  progress_->of(job) += static_cast<uint32_t>(descriptors.size());
  for (const int fd : descriptors) {
    const Order order{fd, static_cast<uint32_t>(job % Progress::kPlaces)};
    if (::write(orders_.get(), &order, sizeof(order)) != static_cast<ssize_t>(sizeof(order))) return std::nullopt;
  }
  return job;
}

bool LinkCloser::has_closed(uint64_t job) const { return progress_->of(job) == 0; }

}  // namespace espy::load
