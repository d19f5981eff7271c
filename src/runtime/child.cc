#include "runtime/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/end_request.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/raised_limits.h"
#include "base/strings.h"
#include "kernel/proc_path.h"
#include "runtime/signals.h"

namespace espy::runtime {

namespace {

// Whether a backslash before `c` is removed, in quotes of the kind `quote`; 0: outside.
bool is_escaped(char c, char quote) {
  if (quote == '"') return c == '\\' || c == '"' || c == '$' || c == '`' || c == '\n';
  return quote == 0;
}

}  // namespace

Result<std::vector<std::string>> split_command(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && i + 1 < command.size() && is_escaped(command[i + 1], quote)) {
      if (command[++i] == '\n') continue;
      word += command[i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return fail(fmt::format("the command of -c has a {} without its end", quote));
  if (in_word) words.push_back(std::move(word));
  return words;
}

namespace {

Result<std::string> path_of_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) == 0) return name;
    return fail_errno("cannot run `" + name + "`", errno);
  }
  if (std::optional<std::string> path = find_program(name)) return std::move(*path);
  return fail("cannot run `" + name + "`: there is no such command in $PATH", ENOENT);
}

constexpr uint64_t kPatienceNs = 1'000'000'000;

[[noreturn]] void wait_and_exec(int gate, ExecReport& report, const std::string& program,
                                std::vector<std::string>& words, const Identity* user) {
  char go = 0;
  if (::read(gate, &go, 1) != 1) ::_exit(127);
  if (user != nullptr)
    if (const int code = become(*user); code != 0) report.exit_with(code);
  unblock_signals();
  restore_limits();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  report.exit_with(errno);
}

}  // namespace

Result<Child> Child::start(const std::string& command, const Identity* user) {
  std::vector<std::string> words = TRY(split_command(command));
  if (words.empty()) return fail("the command of -c is empty");
  const std::string program = TRY(path_of_program(words[0]));
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) < 0) return fail_errno("cannot make a pipe", errno);
  OwnedFd gate_read(gate[0]), gate_write(gate[1]);
  ExecReport report = TRY(ExecReport::make());
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start `" + command + "`", errno);
  if (pid == 0) {
    gate_write.reset();
    wait_and_exec(gate_read.get(), report, program, words, user);
  }
  report.close_writing_end();
  return Child(pid, std::move(gate_write), std::move(report));
}

namespace {

// Whether a process ends within this time; false, too, if that cannot be found out.
bool ends_within(pid_t pid, uint64_t patience_ns) {
  const OwnedFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const uint64_t end_ns = monotonic_ns() + patience_ns;
  for (uint64_t now_ns = monotonic_ns(); process.valid() && now_ns < end_ns; now_ns = monotonic_ns()) {
    pollfd waited = {process.get(), POLLIN, 0};
    const int count = ::poll(&waited, 1, static_cast<int>((end_ns - now_ns) / 1'000'000 + 1));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
  return false;
}

}  // namespace

void Child::wait_until_ready() const {
  constexpr useconds_t kPauseUs = 100;
  const std::string path = kernel::proc_path(pid(), "stat");
  for (const uint64_t end_ns = monotonic_ns() + kPatienceNs; monotonic_ns() < end_ns; ::usleep(kPauseUs)) {
    const auto stat = read_file(path);
    const size_t name_end = stat ? stat->rfind(')') : std::string::npos;
    if (name_end == std::string::npos || name_end + 2 >= stat->size()) return;
    const char state = (*stat)[name_end + 2];  // proc_pid_stat(5)
    if (state != 'R' && state != 'D') return;
  }
}

Status Child::let_go() {
  if (!write_all(gate_.get(), "g")) return fail("the command has ended before it could run");
  gate_.reset();
  const std::optional<int> code = report_.wait(is_end_requested);
  if (!code) return fail("the command has not begun to run", ECANCELED);
  has_begun_ = true;
  if (*code != 0) return fail_errno("cannot run the command", *code);
  return {};
}

Status Child::end() {
  const pid_t pid = std::exchange(pid_.value, 0);
  if (pid <= 0) return {};
  int status = 0;
  if (gate_.valid()) {
    gate_.reset();
  } else if (::waitpid(pid, &status, WNOHANG) != 0) {
    return {};
  } else {
    ::kill(pid, has_begun_ ? SIGTERM : SIGKILL);  // one that was stopped before it began is not ended by SIGTERM
    if (!ends_within(pid, kPatienceNs))
      return fail(
          fmt::format("the command of -c runs on, as process {}: SIGTERM has not ended it within a second", pid),
          ETIMEDOUT);
  }
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {};
}

}  // namespace espy::runtime
