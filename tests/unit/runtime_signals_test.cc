// Signals, each against real ones in a child process: dispositions, masks and timers are the process's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

#include "runtime/signals.h"

namespace espy::runtime {
namespace {

// Returns waitpid's status of a child that runs `body` and exits with what it returns.
int status_of_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool has_exited_with(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
bool was_killed_by(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

bool is_blocked(int signal) {
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

TEST(Signals, TakesAnEndingSignalInsteadOfDyingByIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    const int status = status_of_child([&] {
      Signals signals(false);
      if (signals.take() != 0) return 1;
      ::raise(signal);
      return signals.take() == signal && signals.take() == 0 ? 0 : 2;
    });
    EXPECT_TRUE(has_exited_with(status, 0)) << signal << ": " << status;
  }
}

TEST(Signals, TakesTheUserSignalOnlyIfAskedTo) {
  const auto raise_user_signal = [](bool takes_user_signal) {
    return status_of_child([&] {
      Signals signals(takes_user_signal);
      ::raise(SIGUSR1);
      return signals.take() == SIGUSR1 ? 0 : 1;
    });
  };
  EXPECT_TRUE(has_exited_with(raise_user_signal(true), 0));
  EXPECT_TRUE(was_killed_by(raise_user_signal(false), SIGUSR1));
}

TEST(Signals, SaysThatAnEndingSignalIsPending) {
  const int status = status_of_child([] {
    Signals signals(true);
    ::raise(SIGUSR1);
    if (is_ending_signal_pending()) return 1;
    ::raise(SIGHUP);
    if (!is_ending_signal_pending()) return 2;
    while (signals.take() != 0) {
    }
    return is_ending_signal_pending() ? 3 : 0;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, RestoresTheMask) {
  const int status = status_of_child([] {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    {
      Signals signals(true);
      if (!is_blocked(SIGINT) || !is_blocked(SIGUSR1)) return 1;
    }
    return is_blocked(SIGTERM) && !is_blocked(SIGINT) && !is_blocked(SIGUSR1) ? 0 : 2;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

// Blocks SIGALRM, which ends the grace period, so that the child can wait for it without a race.
void block_alarm() {
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_BLOCK, &alarm, nullptr);
}

TEST(Signals, IgnoresTheSameSignalInTheGracePeriod) {
  const int status = status_of_child([] {
    block_alarm();
    Signals signals(false);
    ::raise(SIGINT);
    if (signals.take() != SIGINT) return 1;
    signals.let_second_quit();
    ::raise(SIGINT);
    return 0;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, LetsASecondSignalQuitAfterTheGracePeriod) {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    const int status = status_of_child([&] {
      block_alarm();
      Signals signals(false);
      signals.let_second_quit();
      sigset_t none;
      sigemptyset(&none);
      ::sigsuspend(&none);
      ::raise(signal);
      return 0;
    });
    EXPECT_TRUE(was_killed_by(status, signal)) << signal << ": " << status;
  }
}

TEST(Signals, UnblocksThemForAChild) {
  const int status = status_of_child([] {
    Signals signals(true);
    unblock_signals();
    return is_blocked(SIGINT) || is_blocked(SIGTERM) || is_blocked(SIGUSR1) ? 1 : 0;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

}  // namespace
}  // namespace espy::runtime
