#include "runtime/event_loop.h"

#include <sys/epoll.h>

#include <cerrno>

namespace espy::runtime {

namespace {

constexpr const char* kCannotWait = "cannot wait for events";

}  // namespace

Result<EventLoop> EventLoop::create() {
  OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail_errno(kCannotWait, errno);
  return EventLoop(std::move(epoll));
}

Status EventLoop::watch(int fd, Handler on_readable) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno(kCannotWait, errno);
  handlers_[fd] = std::move(on_readable);
  return {};
}

void EventLoop::unwatch(int fd) {
  if (handlers_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Status EventLoop::wait(int timeout_ms) {
  epoll_event event = {};
  const int count = ::epoll_wait(epoll_.get(), &event, 1, timeout_ms);
  if (count < 0 && errno != EINTR) return fail_errno(kCannotWait, errno);
  if (count <= 0) return {};
  const auto found = handlers_.find(event.data.fd);
  if (found == handlers_.end()) return {};
  const Handler handler = found->second;  // a copy: it may unwatch itself
  return handler();
}

}  // namespace espy::runtime
