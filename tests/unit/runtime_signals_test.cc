// Signals, each against real ones in a child process, whose dispositions, masks and timers they are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/end_request.h"
#include "base/files.h"
#include "runtime/probe_runner.h"
#include "runtime/run_control.h"
#include "runtime/run_monitor.h"
#include "simulator/simulator.h"

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

TEST(Signals, TheUserSignalDoesNotRequestTheEnd) {
  const int status = status_of_child([] {
    Signals signals(true);
    ::raise(SIGUSR1);
    if (is_end_requested()) return 1;
    ::raise(SIGHUP);
    if (!is_end_requested()) return 2;
    return signals.take() == SIGUSR1 && signals.take() == SIGHUP ? 0 : 3;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, AHangupThatIsTakenRequestsNoEnd) {
  const int status = status_of_child([] {
    ::signal(SIGHUP, SIG_IGN);  // as under nohup
    Signals signals(false, true);
    if (signals.take_hangup()) return 1;
    ::raise(SIGHUP);
    pollfd waited = {signals.fd(), POLLIN, 0};
    if (::poll(&waited, 1, 0) != 1) return 2;
    if (is_end_requested() || signals.take() != 0) return 3;
    return signals.take_hangup() && !signals.take_hangup() ? 0 : 4;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, TheDescriptorIsReadableWhileASignalIsToBeTaken) {
  const int status = status_of_child([] {
    Signals signals(true);
    const auto is_readable = [&] {
      pollfd waited = {signals.fd(), POLLIN, 0};
      return ::poll(&waited, 1, 0) == 1;
    };
    if (is_readable()) return 1;
    ::raise(SIGUSR1);
    ::raise(SIGINT);
    if (!is_readable() || signals.take() != SIGUSR1) return 2;
    if (!is_readable() || signals.take() != SIGINT) return 3;
    return is_readable() ? 4 : 0;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

bool has_disposition(int signal, void (*disposition)(int)) {
  struct sigaction action = {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == disposition;
}

TEST(Signals, KeepsSomeSignalsIgnored) {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    const bool stays_ignored = signal == SIGTERM || signal == SIGHUP;
    const int status = status_of_child([&] {
      ::signal(signal, SIG_IGN);
      Signals signals(false);
      ::raise(signal);
      return signals.take() == (stays_ignored ? 0 : signal) && is_end_requested() == !stays_ignored ? 0 : 1;
    });
    EXPECT_TRUE(has_exited_with(status, 0)) << signal << ": " << status;
  }
}

// The descriptor may be readable still when the signal was taken: it came after the read, and before the flag was.
TEST(Signals, ASignalThatWasTakenDoesNotEndTheRun) {
  const int status = status_of_child([] {
    simulator::Simulator machine;
    const program::Program program;
    const spec::Registry registry({}, {});
    const spec::Config config;
    const ProbeRunner probes(machine, program, registry, config);
    Signals signals(true);
    RunMonitor monitor(machine, program, probes, signals);
    if (!monitor.start({})) return 1;
    const uint64_t one = 1;
    if (::write(signals.fd(), &one, sizeof(one)) != sizeof(one)) return 2;
    if (!monitor.wait(0) || monitor.is_over()) return 3;
    ::raise(SIGTERM);
    return monitor.wait(0) && monitor.is_over() ? 0 : 4;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, AWriteBeyondTheLimitOfFileSizesFails) {
  const int status = status_of_child([] {
    Signals signals(false);
    const OwnedFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    const rlimit limit = {1, 1};
    if (!file.valid() || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (::write(file.get(), "ab", 2) != 1) return 2;
    const sigset_t defaults = default_signals_of_children();
    return ::write(file.get(), "b", 1) < 0 && errno == EFBIG && ::sigismember(&defaults, SIGXFSZ) == 1 ? 0 : 3;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, RestoresWhatWasThere) {
  const int status = status_of_child([] {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    ::signal(SIGINT, SIG_IGN);
    {
      Signals signals(true);
      if (is_blocked(SIGTERM) || !has_disposition(SIGPIPE, SIG_IGN)) return 1;
    }
    if (!is_blocked(SIGTERM) || is_blocked(SIGINT)) return 2;
    const bool is_restored = has_disposition(SIGINT, SIG_IGN) && has_disposition(SIGTERM, SIG_DFL) &&
                             has_disposition(SIGUSR1, SIG_DFL) && has_disposition(SIGPIPE, SIG_DFL);
    return is_restored ? 0 : 3;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, IgnoresTheNextSignalInTheGracePeriod) {
  const int status = status_of_child([] {
    {
      Signals signals(false);
      ::raise(SIGINT);
      if (signals.take() != SIGINT) return 1;
      ::raise(SIGINT);
      if (signals.take() != 0) return 2;
    }
    ::raise(SIGTERM);
    return 0;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, LetsAnotherSignalQuitAfterTheGracePeriod) {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    const int status = status_of_child([&] {
      Signals signals(false);
      ::raise(SIGINT);
      while (!has_disposition(signal, SIG_DFL)) ::usleep(1000);
      if (ns_since_end_request() < 300'000'000) return 1;
      ::raise(signal);
      return 0;
    });
    EXPECT_TRUE(was_killed_by(status, signal)) << signal << ": " << status;
  }
}

// A full pipe without a reader.
TEST(Signals, AnEndingSignalEndsAWriteThatWaits) {
  for (const int flags : {0, O_NONBLOCK}) {
    const int status = status_of_child([&] {
      int ends[2];
      if (::pipe2(ends, flags) != 0) return 1;
      Signals signals(false);
      const pid_t parent = ::getpid();
      if (::fork() == 0) {
        int waiting = 0;
        do ::ioctl(ends[0], FIONREAD, &waiting);
        while (waiting == 0);
        ::kill(parent, SIGTERM);
        ::_exit(0);
      }
      const Status written = write_all(ends[1], std::string(1024 * 1024, 'x'));
      return !written && written.error().code == ETIMEDOUT && ns_since_end_request() >= 1'000'000'000 ? 0 : 2;
    });
    EXPECT_TRUE(has_exited_with(status, 0)) << status;
  }
}

// Behind the first reader that does not read, there may be others, such as that of stderr.
TEST(Signals, TheNextWriteThatWaitsEndsSooner) {
  const int status = status_of_child([] {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) return 1;
    Signals signals(false);
    ::raise(SIGTERM);
    const std::string text(1024 * 1024, 'x');
    const Status first = write_all(ends[1], text);
    const uint64_t first_ns = ns_since_end_request();
    const Status second = write_all(ends[1], text);
    if (first || second) return 2;
    return ns_since_end_request() - first_ns < first_ns / 2 ? 0 : 3;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

TEST(Signals, UnblocksThemForAChild) {
  const int status = status_of_child([] {
    Signals signals(true);
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    unblock_signals();
    return is_blocked(SIGINT) || is_blocked(SIGTERM) || is_blocked(SIGUSR1) ? 1 : 0;
  });
  EXPECT_TRUE(has_exited_with(status, 0)) << status;
}

}  // namespace
}  // namespace espy::runtime
