#include "golden/support/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/fd.h"

namespace espy::golden {

namespace {

OwnedFd new_file(const char* name) { return OwnedFd(::memfd_create(name, MFD_CLOEXEC)); }

std::string content(const OwnedFd& file) { return read_file(fmt::format("/proc/self/fd/{}", file.get())).value_or(""); }

}  // namespace

Outcome run_child(const std::function<int()>& body, uint32_t timeout_ms) {
  const OwnedFd out = new_file("stdout"), err = new_file("stderr");
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    const int status = body();
    std::fflush(nullptr);
    ::_exit(status);
  }
  Outcome outcome;
  const OwnedFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd waiting = {handle.get(), POLLIN, 0};
  outcome.timed_out = ::poll(&waiting, 1, static_cast<int>(timeout_ms)) == 0;
  if (outcome.timed_out) ::kill(-pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
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
