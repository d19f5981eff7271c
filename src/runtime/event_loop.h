// EventLoop: file descriptors that become readable, each with a handler. One thread, one epoll(7) instance.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace espy::runtime {

class EventLoop {
 public:
  using Handler = std::function<Status()>;

  static Result<EventLoop> create();

  // Calls `on_readable` from `wait` whenever `fd` is readable, until `unwatch`. Fails if epoll_ctl(2) does: for a
  // regular file, or a descriptor that is watched already. `fd` must stay open until then.
  Status watch(int fd, Handler on_readable);
  // A handler may unwatch its own descriptor. Ignores one that is not watched.
  void unwatch(int fd);

  // Waits up to `timeout_ms`, -1 without limit, and calls the handler of one readable descriptor; returns its error.
  // Returns early, without an error, if a signal interrupts.
  Status wait(int timeout_ms);

 private:
  explicit EventLoop(OwnedFd epoll) : epoll_(std::move(epoll)) {}

  OwnedFd epoll_;
  std::map<int, Handler> handlers_;
};

}  // namespace espy::runtime
