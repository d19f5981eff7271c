#include "runtime/signals.h"

#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

namespace espy::runtime {

namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
constexpr int kGraceUs = 300'000;

void set_disposition(void (*disposition)(int)) {
  for (const int signal : kEndingSignals) ::signal(signal, disposition);
}

}  // namespace

Signals::Signals(bool takes_user_signal) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : kEndingSignals) sigaddset(&taken, signal);
  if (takes_user_signal) sigaddset(&taken, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &taken, &mask_before_);
  fd_ = OwnedFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() { ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr); }

int Signals::take() {
  signalfd_siginfo info = {};
  const bool is_read = ::read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
  return is_read ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::let_second_quit() {
  set_disposition(SIG_IGN);
  ::signal(SIGALRM, [](int) { set_disposition(SIG_DFL); });
  itimerval grace = {};
  grace.it_value.tv_usec = kGraceUs;
  ::setitimer(ITIMER_REAL, &grace, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

bool is_ending_signal_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return std::ranges::any_of(kEndingSignals, [&](int signal) { return ::sigismember(&pending, signal) == 1; });
}

void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace espy::runtime
