#include "golden/support/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/files.h"
#include "base/process.h"

namespace espy::golden {

namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

const sigset_t kEnds = set_of({SIGINT, SIGTERM, SIGHUP});
const sigset_t kAll = set_of({SIGINT, SIGTERM, SIGHUP, SIGCHLD});

int64_t now_ms() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

[[noreturn]] void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_UNBLOCK, &kEnds, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

OwnedFd new_file(const char* name) { return OwnedFd(::memfd_create(name, MFD_CLOEXEC)); }

std::string content(const OwnedFd& file) { return read_file(fmt::format("/proc/self/fd/{}", file.get())).value_or(""); }

// By /proc/PID/stat: "PID (name) S PPID ..."; 0 where there is no such process any more.
pid_t parent_of(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos ? 0 : ::atoi(stat.c_str() + name_end + 4);
}

// Children, theirs, and so on. What lost its parent is ours: see own_descendants().
std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  for (const uint32_t pid : numbered_entries("/proc")) children.emplace(parent_of(static_cast<pid_t>(pid)), pid);
  std::vector<pid_t> out = {::getpid()};
  for (size_t i = 0; i < out.size(); ++i) {
    const auto [begin, end] = children.equal_range(out[i]);
    for (auto child = begin; child != end; ++child) out.push_back(child->second);
  }
  out.erase(out.begin());
  return out;
}

// Takes those that have ended off the kernel's hands, but `kept`.
void reap_others(pid_t kept) {
  siginfo_t ended = {};
  while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 && ended.si_pid != kept) {
    ::waitpid(ended.si_pid, nullptr, 0);
    ended = {};
  }
}

// Until `handle` says that the child has ended; false where time is over, or a signal wants us to end, which is given.
bool wait_for(pid_t pid, const OwnedFd& handle, uint32_t timeout_ms, int& signal) {
  const OwnedFd signals(::signalfd(-1, &kAll, SFD_CLOEXEC | SFD_NONBLOCK));
  const int64_t end_ms = now_ms() + timeout_ms;
  for (;;) {
    pollfd waiting[] = {{handle.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    const int64_t left_ms = end_ms - now_ms();
    if (left_ms <= 0 || ::poll(waiting, 2, static_cast<int>(left_ms)) == 0) return false;
    if (waiting[0].revents != 0) return true;
    signalfd_siginfo info = {};
    while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) {
        signal = static_cast<int>(info.ssi_signo);
        return false;
      }
      reap_others(pid);
    }
  }
}

}  // namespace

void own_descendants() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::sigprocmask(SIG_BLOCK, &kAll, nullptr);
}

// A process that is killed while it forks leaves one more: so until there is none.
void end_descendants() {
  for (std::vector<pid_t> left = descendants(); !left.empty(); left = descendants()) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::waitpid(-1, nullptr, 0);
  }
}

OwnedFd open_end_signals() { return OwnedFd(::signalfd(-1, &kEnds, SFD_CLOEXEC)); }

void end_by(const OwnedFd& signals) {
  signalfd_siginfo info = {};
  const bool is_read = ::read(signals.get(), &info, sizeof(info)) == sizeof(info);
  end_descendants();
  die_of(is_read ? static_cast<int>(info.ssi_signo) : SIGTERM);
}

Outcome run_child(const std::function<int()>& body, uint32_t timeout_ms) {
  const OwnedFd out = new_file("stdout"), err = new_file("stderr");
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    ::sigprocmask(SIG_UNBLOCK, &kAll, nullptr);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    const int status = body();
    std::fflush(nullptr);
    ::_exit(status);
  }
  Outcome outcome;
  const OwnedFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  int signal = 0, status = 0;
  outcome.timed_out = !wait_for(pid, handle, timeout_ms, signal);
  if (outcome.timed_out) ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  if (outcome.timed_out) end_descendants();
  if (signal != 0) die_of(signal);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = content(out);
  outcome.err = content(err);
  return outcome;
}

Outcome run_program(const std::vector<std::string>& argv, const std::string& directory,
                    const std::vector<std::pair<std::string, std::string>>& environment, uint32_t timeout_ms) {
  return run_child(
      [&] {
        if (!directory.empty() && ::chdir(directory.c_str()) != 0) return 127;
        for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> pointers;
        for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
        pointers.push_back(nullptr);
        ::execv(pointers[0], pointers.data());
        std::perror(pointers[0]);
        return 127;
      },
      timeout_ms);
}

}  // namespace espy::golden
