#include "runtime/shell.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/end_request.h"
#include "base/fd.h"
#include "runtime/signals.h"

namespace espy::runtime {

namespace {

constexpr uint64_t kPatienceNs = 1'000'000'000;
constexpr size_t kPieceBytes = 1024 * 1024;

Result<pid_t> start_shell(const std::string& command, int output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const sigset_t defaults = default_signals_of_children();
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  std::string shell = "sh", option = "-c", text = command;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  const int code = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return fail_errno("cannot run `" + command + "`", code);
  return pid;
}

// Whether a command that was started at `start_ns` is waited for no longer.
struct Patience {
  bool ends_late = false;
  uint64_t start_ns = 0;
  bool is_over() const {
    return ends_late && ns_since_end_request() >= kPatienceNs && monotonic_ns() - start_ns >= kPatienceNs;
  }
};

// False if it took too long.
bool forward_output(int output, const Patience& patience, const std::function<void(std::string_view)>& on_output) {
  std::string text;
  char chunk[4 * 1024];
  bool is_first = true, is_over = false;
  while (!(is_over = patience.is_over())) {
    const ssize_t got = ::read(output, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk, static_cast<size_t>(got));
    if (text.size() < kPieceBytes) continue;
    on_output(text);
    text.clear();
    is_first = false;
  }
  if (is_first || !text.empty()) on_output(text);
  return !is_over;
}

bool wait_for_end(pid_t pid, const Patience& patience) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR)
    if (patience.is_over()) return false;
  return true;
}

}  // namespace

Status run_shell_command(const std::string& command, bool ends_late,
                         const std::function<void(std::string_view)>& on_output) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const OwnedFd output(ends[0]);
  OwnedFd its_output(ends[1]);
  const Patience patience{ends_late, monotonic_ns()};
  const pid_t pid = TRY(start_shell(command, its_output.get()));
  its_output.reset();
  if (forward_output(output.get(), patience, on_output) && wait_for_end(pid, patience)) return {};
  ::kill(pid, SIGTERM);
  return fail("`" + command + "` ran on when the run had to end, and was ended", ETIMEDOUT);
}

}  // namespace espy::runtime
