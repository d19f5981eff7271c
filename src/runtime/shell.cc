#include "runtime/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/fd.h"
#include "base/raised_limits.h"
#include "runtime/signals.h"

namespace espy::runtime {

namespace {

constexpr uint64_t kShellPatienceNs = kNsPerSecond;
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
  const RestoredLimits limits;
  const int code = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return fail_errno("cannot run `" + command + "`", code);
  return pid;
}

// When a command is waited for no longer.
class Patience {
 public:
  explicit Patience(const ShellLimits& limits) : limits_(limits), start_ns_(monotonic_ns()) {}

  // 0, or the error code of ShellResult.
  int error() const {
    const uint64_t run_ns = monotonic_ns() - start_ns_;
    if (limits_.ends_after_request && ns_since_end_request() >= kShellPatienceNs && run_ns >= kShellPatienceNs)
      return ETIMEDOUT;
    return limits_.seconds != 0 && run_ns / kNsPerSecond >= limits_.seconds ? ETIME : 0;
  }

  // Waits until `fd` is readable. False if patience is over before.
  bool wait_for(int fd) const {
    while (error() == 0) {
      pollfd waited = {fd, POLLIN, 0};
      if (::poll(&waited, 1, kLongestWaitMs) > 0) return true;
    }
    return false;
  }

 private:
  static constexpr int kLongestWaitMs = 100;
  const ShellLimits& limits_;
  uint64_t start_ns_;
};

// Gives the output in pieces, up to a limit.
class OutputPieces {
 public:
  OutputPieces(uint64_t max_bytes, const std::function<void(std::string_view)>& on_output)
      : rest_bytes_(max_bytes), on_output_(on_output) {}

  void add(std::string_view chunk) {
    was_cut_ |= chunk.size() > rest_bytes_;
    chunk = chunk.substr(0, rest_bytes_);
    rest_bytes_ -= chunk.size();
    text_ += chunk;
    if (text_.size() >= kPieceBytes) give();
  }
  void end() {
    if (is_first_ || !text_.empty()) give();
  }
  bool was_cut() const { return was_cut_; }

 private:
  void give() {
    on_output_(text_);
    text_.clear();
    is_first_ = false;
  }

  uint64_t rest_bytes_;
  const std::function<void(std::string_view)>& on_output_;
  std::string text_;
  bool is_first_ = true;
  bool was_cut_ = false;
};

// False if it took too long. What is beyond the limit is read, too: a command that cannot write would end or wait.
bool forward_output(int output, const Patience& patience, OutputPieces& pieces) {
  char chunk[64 * 1024];
  bool is_over = false;
  while (!(is_over = !patience.wait_for(output))) {
    const ssize_t got = ::read(output, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    pieces.add({chunk, static_cast<size_t>(got)});
  }
  pieces.end();
  return !is_over;
}

bool has_ended(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; }

bool wait_for_end(pid_t pid, const Patience& patience) {
  const OwnedFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.valid() && !patience.wait_for(process.get())) return false;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
    if (patience.error() != 0) return false;
  return true;
}

Error too_long(const std::string& command, const ShellLimits& limits, int code, bool has_shell_ended) {
  if (code == ETIMEDOUT) return {"`" + command + "` ran on when the run had to end, and was ended", code};
  const std::string after = fmt::format("after max_system_seconds = {}", limits.seconds);
  if (!has_shell_ended) return {fmt::format("`{}` was ended {}", command, after), code};
  return {fmt::format("`{}` has ended, but not what it started: its output is read no longer, {}", command, after),
          code};
}

// Takes the exit statuses of commands that were not waited for.
void reap_left(std::vector<pid_t>& left) { std::erase_if(left, has_ended); }

}  // namespace

Result<ShellResult> run_shell_command(const std::string& command, const ShellLimits& limits,
                                      const std::function<void(std::string_view)>& on_output) {
  static std::vector<pid_t> left;
  reap_left(left);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const OwnedFd output(ends[0]);
  OwnedFd its_output(ends[1]);
  const Patience patience(limits);
  const pid_t pid = TRY(start_shell(command, its_output.get()));
  its_output.reset();
  OutputPieces pieces(limits.output_bytes, on_output);
  if (forward_output(output.get(), patience, pieces) && wait_for_end(pid, patience))
    return ShellResult{pieces.was_cut(), {}};
  const int code = patience.error();
  const bool had_ended = has_ended(pid);
  if (!had_ended) {
    ::kill(pid, SIGTERM);
    left.push_back(pid);
  }
  return ShellResult{pieces.was_cut(), tl::unexpected(too_long(command, limits, code, had_ended))};
}

}  // namespace espy::runtime
