#include "runtime/run_monitor.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace espy::runtime {

Status RunMonitor::start(std::span<const uint32_t> pids) {
  loop_ = TRY(EventLoop::create());
  TRY_STATUS(loop_->watch(signals_.fd(), [this] { return handle_signal(); }));
  for (const uint32_t pid : pids) TRY_STATUS(watch_process(pid));
  for (const int fd : machine_.iterators()) TRY_STATUS(watch_iterator(fd));
  return {};
}

Status RunMonitor::wait(int timeout_ms) { return loop_->wait(timeout_ms); }

Status RunMonitor::handle_signal() {
  if (signals_.take() == SIGUSR1) return probes_.run_signal_probes();
  is_over_ = true;
  return {};
}

Status RunMonitor::watch_process(uint32_t pid) {
  OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    if (errno != ESRCH) return fail_errno(fmt::format("cannot wait for the end of process {}", pid), errno);
    is_over_ = true;
    return {};
  }
  const int fd = pidfd.get();
  pidfds_.push_back(std::move(pidfd));
  return loop_->watch(fd, [this, fd]() -> Status {
    if (!program_.following.processes.valid()) {
      is_over_ = true;
      return {};
    }
    loop_->unwatch(fd);
    polls_followed_processes_ = true;
    return {};
  });
}

Status RunMonitor::watch_iterator(int fd) {
  ++running_iterators_;
  return loop_->watch(fd, [this, fd]() -> Status {
    loop_->unwatch(fd);
    is_over_ |= --running_iterators_ == 0;
    return {};
  });
}

bool RunMonitor::has_followed_process() const {
  bool is_one_alive = false;
  machine_.for_each(program_.following.processes, [&](std::span<const std::byte>, std::span<const std::byte> value) {
    is_one_alive |= std::ranges::any_of(value, [](std::byte b) { return b != std::byte{}; });
  });
  return is_one_alive;
}

}  // namespace espy::runtime
