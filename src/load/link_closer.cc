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

struct LinkCloser::Progress {
  std::atomic<uint64_t> closed_jobs = 0;
};

namespace {

constexpr int kEndOfJob = -1;

// In the process. Descriptors of a job come first, then its end.
template <class Closed>
[[noreturn]] void close_all(int orders, pid_t parent, const Closed& closed) {
  block_all_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpriority(PRIO_PROCESS, 0, -20);  // what waits to be closed still takes time of others
  if (::getppid() != parent) ::_exit(0);
  int order = 0;
  while (::read(orders, &order, sizeof(order)) == static_cast<ssize_t>(sizeof(order))) {
    if (order == kEndOfJob)
      closed();
    else
      ::close(order);
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
  const long child = ::syscall(__NR_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child < 0) {
    const int code = errno;
    ::munmap(memory, sizeof(Progress));
    return fail_errno("cannot start a process that closes links", code);
  }
  // The table of descriptors is the same: the process keeps both ends of the pipe open.
  if (child == 0) close_all(from.get(), parent, [&] { ++progress->closed_jobs; });
  return std::unique_ptr<LinkCloser>(
      new LinkCloser(std::move(from), std::move(to), progress, static_cast<pid_t>(child)));
}

// It may be in the middle of closing; nothing waits for it.
LinkCloser::~LinkCloser() {
  ::kill(process_, SIGKILL);
  ::munmap(progress_, sizeof(Progress));
}

std::optional<uint64_t> LinkCloser::close_soon(std::span<const int> descriptors) {
  const auto send = [&](int order) {
    return ::write(orders_.get(), &order, sizeof(order)) == static_cast<ssize_t>(sizeof(order));
  };
  for (const int fd : descriptors)
    if (!send(fd)) return std::nullopt;
  if (!send(kEndOfJob)) return std::nullopt;
  return ++jobs_;
}

bool LinkCloser::has_closed(uint64_t job) const { return progress_->closed_jobs.load() >= job; }

}  // namespace espy::load
