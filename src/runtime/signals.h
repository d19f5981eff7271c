// The signals of a run: which ones end it, what a second one does, and what children of espy start with.
#pragma once

#include <signal.h>

#include "base/fd.h"

namespace espy::runtime {

// SIGINT, SIGTERM, SIGQUIT and SIGHUP, and SIGUSR1 where it is asked for: blocked, and read from a descriptor
// (signalfd(2)). The destructor restores the signal mask.
class Signals {
 public:
  explicit Signals(bool takes_user_signal);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }  // readable while a signal is pending
  // Takes a pending signal and returns its number; 0 if there is none.
  int take();

  // Restores the signal mask and lets a second signal end the process, once a grace period of 300 ms is over. The
  // period is for timeout(1) and sudo(8): they pass on to their child a signal that the terminal has sent it already.
  void let_second_quit();

 private:
  sigset_t mask_before_ = {};
  OwnedFd fd_;
};

// True if a signal that ends the run is blocked and pending.
bool is_ending_signal_pending();

// For a child, between fork and exec: unblocks all signals.
void unblock_signals();

}  // namespace espy::runtime
