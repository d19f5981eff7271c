#include "runtime/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/processes.h"
#include "runtime/run_control.h"

namespace espy::runtime {

namespace {

// 2^32 - 1 means "unchanged" in setresuid(2).
std::optional<uint32_t> parse_id(std::string_view text) {
  const auto id = parse_int(text);
  if (text.empty() || !id || *id < 0 || *id >= std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*id);
}

// The user with this name, or with this number as uid.
std::optional<Identity> find_user(std::string_view passwd, std::string_view name) {
  const auto number = parse_id(name);
  for (const std::string_view line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const auto user = parse_id(fields[2]), group = parse_id(fields[3]);
    if (!user || !group || (fields[0] != name && user != number)) continue;
    return Identity{std::string(fields[0]), *user, *group, {*group}};
  }
  return std::nullopt;
}

void add_groups(std::string_view group_file, Identity& identity) {
  for (const std::string_view line : split(group_file, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const auto members = split(fields[3], ',');
    const auto group = parse_id(fields[2]);
    if (!group || std::ranges::find(members, std::string_view(identity.name)) == members.end()) continue;
    if (std::ranges::find(identity.groups, *group) == identity.groups.end()) identity.groups.push_back(*group);
  }
}

}  // namespace

Result<Identity> find_identity(std::string_view name) {
  Identity out;
  const size_t colon = name.find(':');
  const auto user = parse_id(name.substr(0, colon));
  std::optional<uint32_t> group;
  if (colon != name.npos) group = parse_id(name.substr(colon + 1));
  if (user && group) {
    out = {std::string(name), *user, *group, {*group}};
  } else {
    const auto found = find_user(read_untrusted("/etc/passwd", kMaxTextBytes).value_or(""), name);
    if (!found)
      return fail(fmt::format("there is no user `{}` in /etc/passwd", name), 0,
                  "--user takes a name, or the numbers UID:GID");
    out = *found;
    add_groups(read_untrusted("/etc/group", kMaxTextBytes).value_or(""), out);
  }
  if (out.user == 0) return fail("--user takes another user than root");
  return out;
}

int become(const Identity& identity) {
  if (::setgroups(identity.groups.size(), identity.groups.data()) != 0) return errno;
  if (::setresgid(identity.group, identity.group, identity.group) != 0) return errno;
  return ::setresuid(identity.user, identity.user, identity.user) == 0 ? 0 : errno;
}

int drop_capabilities(uint64_t kept) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i)
    data[i].effective = data[i].permitted = static_cast<uint32_t>(kept >> (32 * i));
  return ::syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

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

int wait_and_exec(int gate, ExecReport& report, const std::string& program, std::vector<std::string>& words,
                  const Identity* user) {
  char go = 0;
  if (::read(gate, &go, 1) != 1) return EXIT_FAILURE;
  if (user != nullptr)
    if (const int code = become(*user); code != 0) return report.fail_with(code);
  unblock_signals();
  restore_limits();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return report.fail_with(errno);
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
  const auto run = [&] {
    gate_write.reset();
    return wait_and_exec(gate_read.get(), report, program, words, user);
  };
  const pid_t pid = TRY(start_child(run, {.failure = "cannot start `" + command + "`"}));
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

namespace {

std::string failure_of(int status) {
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 0 ? "" : fmt::format("exited with status {}", WEXITSTATUS(status));
  if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGINT) return "";
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name != nullptr ? fmt::format("was killed by SIG{}", name)
                         : fmt::format("was killed by signal {}", WTERMSIG(status));
}

}  // namespace

Status Child::end() {
  const pid_t pid = std::exchange(pid_.value, 0);
  if (pid <= 0) return {};
  if (gate_.valid()) {
    gate_.reset();
  } else if (int status = 0; has_child_ended(pid, &status)) {
    if (has_begun_) failure_ = failure_of(status);
    return {};
  } else {
    ::kill(pid, has_begun_ ? SIGTERM : SIGKILL);  // one that was stopped before it began is not ended by SIGTERM
    if (!ends_within(pid, kPatienceNs))
      return fail(
          fmt::format("the command of -c runs on, as process {}: SIGTERM has not ended it within a second", pid),
          ETIMEDOUT);
  }
  wait_for_child(pid);
  return {};
}

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
void reap_left(std::vector<pid_t>& left) {
  std::erase_if(left, [](pid_t child) { return has_child_ended(child); });
}

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
  const bool had_ended = has_child_ended(pid);
  if (!had_ended) {
    ::kill(pid, SIGTERM);
    left.push_back(pid);
  }
  return ShellResult{pieces.was_cut(), tl::unexpected(too_long(command, limits, code, had_ended))};
}

void notify_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof(address.sun_path)) return;
  const size_t length = std::strlen(path);
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const OwnedFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return;
  const timeval limit = {1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace espy::runtime
