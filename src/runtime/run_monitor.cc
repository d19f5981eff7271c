#include "runtime/run_monitor.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace espy::runtime {

Status RunMonitor::start(std::span<const uint32_t> pids) {
  loop_ = TRY(EventLoop::create());
  TRY_STATUS(loop_->watch(signals_.fd(), [this] { return handle_signal(); }));
  for (const uint32_t pid : pids) TRY_STATUS(watch_process(pid));
  is_over_ |= !pids.empty() && running_processes_ == 0;
  for (const int fd : machine_.iterators()) TRY_STATUS(watch_iterator(fd));
  return {};
}

Status RunMonitor::serve(RunServer& server, LiveRun& run) {
  return loop_->watch(server.fd(), [&server, &run]() -> Status {
    server.serve(run);
    return {};
  });
}

Status RunMonitor::wake_by(int fd) {
  return loop_->watch(fd, [] { return Status(); });
}

Status RunMonitor::wait(int timeout_ms) { return loop_->wait(timeout_ms); }

Status RunMonitor::handle_signal() {
  const int signal = signals_.take();
  if (signal == SIGUSR1) return probes_.run_signal_probes();
  is_over_ |= signal != 0;
  return {};
}

Status RunMonitor::watch_process(uint32_t pid) {
  OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    if (errno != ESRCH) return fail_errno(fmt::format("cannot wait for the end of process {}", pid), errno);
    return {};
  }
  const int fd = pidfd.get();
  pidfds_.push_back(std::move(pidfd));
  ++running_processes_;
  return loop_->watch(fd, [this, fd]() -> Status {
    loop_->unwatch(fd);
    if (--running_processes_ == 0) end_processes();
    return {};
  });
}

void RunMonitor::end_processes() {
  if (program_.following.processes.valid())
    polls_followed_processes_ = true;
  else
    is_over_ = true;
}

// The directory above tells of the removal: inotify(7) does not see the inode of a control group go.
Status RunMonitor::watch_directory(const std::string& path) {
  const auto fail_with = [&](int code) { return fail_errno("cannot wait for the end of " + path, code); };
  inotify_ = OwnedFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_.valid()) return fail_with(errno);
  const std::string above = path.substr(0, path.rfind('/'));
  if (::inotify_add_watch(inotify_.get(), above.c_str(), IN_DELETE | IN_ONLYDIR) < 0) return fail_with(errno);
  const auto check = [this, path]() -> Status {
    alignas(inotify_event) char events[8192];
    while (::read(inotify_.get(), events, sizeof(events)) > 0) {
    }
    is_over_ |= ::access(path.c_str(), F_OK) != 0;
    return {};
  };
  TRY_STATUS(loop_->watch(inotify_.get(), check));
  return check();  // it may have gone before
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
  const Status read = machine_.for_each(
      program_.following.processes, [&](std::span<const std::byte>, std::span<const std::byte> value) {
        is_one_alive |= std::ranges::any_of(value, [](std::byte b) { return b != std::byte{}; });
      });
  return is_one_alive || !read.has_value();  // a map that cannot be read does not end the run
}

}  // namespace espy::runtime
