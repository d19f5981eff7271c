// Whether a run continues: exit(), signals, and the event loop that waits for them.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/files.h"
#include "base/result.h"
#include "load/machine.h"
#include "program/program.h"

namespace espy::runtime {

// ---- Whether the run continues: the requested exit, and the words of `globals` by which programs learn of it.

class RunControl {
 public:
  RunControl(load::Machine& machine, const program::Program& program) : machine_(machine), program_(program) {}

  // The first request sets the exit status, later ones are ignored.
  void request_exit(int status);
  bool is_exit_requested() const { return is_exit_requested_; }
  // The status of the first exit(). If its record was lost, the status of the last program that called exit(). 0 if
  // there was none.
  int exit_status() const;

  // True if a program called exit() or stop_programs() was called. exit() sets the flag and also sends a record, which
  // may have been lost.
  bool has_exit_flag() const;
  // Sets the exit flag: from now on every program returns at once, except programs that run after exit.
  void stop_programs();
  // Clears the request, its status and the exit flag.
  void reset();
  // Sets the start of `elapsed` to now.
  void start_clock();

 private:
  uint64_t load(uint32_t offset_bytes) const;
  void store(uint32_t offset_bytes, uint64_t value);

  load::Machine& machine_;
  const program::Program& program_;
  bool is_exit_requested_ = false;
  int exit_status_ = 0;
};

// ---- EventLoop: file descriptors that become readable, each with a handler. One thread, one epoll(7) instance.

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

// ---- The signals of a run: which ones end it, what a second one does, and what children of espy start with.

// Takes SIGINT, SIGTERM, SIGQUIT and SIGHUP, and SIGUSR1 on request, by handlers, which interrupt all waits. An ending
// signal requests the end (base/end_request.h). From then on a timer interrupts waits ten times a second, so that they
// see the request. After a grace period of 300 ms, the next signal ends the process. The period is for timeout(1) and
// sudo(8): they pass on to their child a signal that the terminal has sent it already.
//
// With `takes_hangup`, SIGHUP requests no end; take_hangup() reports it.
//
// Otherwise SIGHUP and SIGTERM stay ignored if they are, as under nohup(1). SIGINT and SIGQUIT are taken then, too: a
// shell without job control ignores them for each command that ends with `&`, and `kill -INT` is how such a run is
// ended. SIGPIPE and SIGXFSZ are ignored: a write then fails with EPIPE or EFBIG.
//
// One object at a time. The destructor restores the previous handlers; after an ending signal only SIGPIPE and SIGXFSZ.
class Signals {
 public:
  explicit Signals(bool takes_user_signal, bool takes_hangup = false);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }  // readable while a signal is to be taken, or was taken just before
  // Takes a signal and returns its number; 0 if there is none. SIGUSR1 comes before an ending signal.
  int take();
  // Whether SIGHUP has come since the last call. Costs no system call.
  bool take_hangup();

 private:
  static constexpr size_t kMaxTaken = 8;
  struct Before {
    int signal = 0;
    struct sigaction action = {};
  };
  void handle(int signal, void (*handler)(int), int flags);

  OwnedFd fd_;
  sigset_t mask_before_ = {};
  Before before_[kMaxTaken];
  size_t taken_count_ = 0;
};

// The signals that a child starts with at their default, whatever espy does with them: SIGPIPE and SIGXFSZ, unless they
// were ignored before `Signals`.
sigset_t default_signals_of_children();

// For a child, between fork and exec: unblocks all signals.
void unblock_signals();

}  // namespace espy::runtime
