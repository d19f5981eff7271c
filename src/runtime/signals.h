// The signals of a run: which ones end it, what a second one does, and what children of espy start with.
#pragma once

#include <signal.h>

#include "base/fd.h"

namespace espy::runtime {

// Takes SIGINT, SIGTERM, SIGQUIT and SIGHUP, and SIGUSR1 where it is asked for, by handlers, which interrupt whatever
// waits. An ending signal requests the end (base/end_request.h). From then on a timer interrupts what waits ten times a
// second, so that it sees the request; and after a grace period of 300 ms, the next signal ends the process. The period
// is for timeout(1) and sudo(8): they pass on to their child a signal that the terminal has sent it already.
//
// SIGHUP and SIGTERM stay ignored if they are, as under nohup(1). SIGINT and SIGQUIT are taken then, too: a shell
// without job control ignores them for each command that ends with `&`, and `kill -INT` is how such a run is ended.
// SIGPIPE and SIGXFSZ are ignored: a write then fails with EPIPE or EFBIG.
//
// One object at a time. The destructor restores what was there before; after an ending signal only SIGPIPE and SIGXFSZ.
class Signals {
 public:
  explicit Signals(bool takes_user_signal);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }  // readable while a signal is to be taken, or was taken just before
  // Takes a signal and returns its number; 0 if there is none. SIGUSR1 comes before an ending signal.
  int take();

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
