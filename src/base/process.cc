#include "base/process.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/end_request.h"
#include "base/fatal.h"
#include "base/files.h"
#include "base/strings.h"

namespace espy {

Result<pid_t> start_child(const std::function<int()>& body, const ChildOptions& options) {
  const pid_t parent = ::getpid();
  const auto child =
      options.shares_descriptors
          ? static_cast<pid_t>(::syscall(SYS_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, nullptr, nullptr))
          : ::fork();
  if (child < 0) return fail_errno(std::string(options.failure), errno);
  if (child > 0) return child;
  if (options.parent_end_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, options.parent_end_signal);
    if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  }
  ::_exit(body());
}

Status start_orphan(const std::function<int()>& body) {
  const auto start = [&] { return start_child(body) ? EXIT_SUCCESS : EXIT_FAILURE; };
  const std::optional<int> status = wait_for_child(TRY(start_child(start)));
  if (status != EXIT_SUCCESS) return fail("cannot start a process");
  return {};
}

std::optional<int> wait_for_child(pid_t child) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended != child) return std::nullopt;
  return status;
}

bool has_child_ended(pid_t child, int* status) { return ::waitpid(child, status, WNOHANG) != 0; }

void end_child(pid_t child) {
  if (::kill(child, SIGKILL) == 0) wait_for_child(child);
}

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
}

void wait_for_death_of(pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGUSR2);
  sigset_t death;
  sigemptyset(&death);
  sigaddset(&death, SIGUSR2);
  timespec once_a_second = {1, 0};
  while (::getppid() == parent) ::sigtimedwait(&death, nullptr, &once_a_second);
}

namespace {

// The reply of the process: an errno, or 0; then what was made, or the error's message.
std::string encode(const Result<std::string>& result) {
  const int code = result ? 0 : std::max(result.error().code, 1);
  std::string reply(reinterpret_cast<const char*>(&code), sizeof(code));
  return reply + (result ? *result : result.error().message);
}

Result<std::string> decode(const std::string& reply) {
  int code = 0;
  if (reply.size() < sizeof(code)) return fail("a process that has to clean up has ended");
  std::memcpy(&code, reply.data(), sizeof(code));
  std::string text = reply.substr(sizeof(code));
  if (code != 0) return fail(std::move(text), code);
  return text;
}

// Signals are blocked before anything is made. No descriptor stays open, as the other end of a pipe would wait for it.
int make_and_clean(pid_t parent, int reply, const std::function<Result<std::string>()>& make,
                   const std::function<void(const std::string&)>& clean) {
  block_all_signals();
  const Result<std::string> made = make();
  const bool is_reported = write_all(reply, encode(made)).has_value();
  ::syscall(SYS_close_range, 0U, ~0U, 0U);
  if (!made) return EXIT_FAILURE;
  if (is_reported) wait_for_death_of(parent);
  clean(*made);
  return EXIT_SUCCESS;
}

}  // namespace

Result<Janitor> Janitor::start(const std::function<Result<std::string>()>& make,
                               const std::function<void(const std::string& made)>& clean) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const OwnedFd reply(ends[0]);
  OwnedFd its_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = TRY(start_child([&] { return make_and_clean(parent, its_end.get(), make, clean); }));
  its_end.reset();
  Result<std::string> made = decode(read_to_end(reply.get(), "the reply").value_or(""));
  Janitor janitor(pid, made ? *made : std::string());  // ends the process if there is an error
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  return janitor;
}

Janitor::~Janitor() {
  if (pid_ != 0) end_child(pid_);  // if espy may not (--user), it cleans after the end
}

namespace {

struct Raised {
  int resource = 0;
  rlimit before = {}, now = {};
};

std::array<Raised, 2> kept;
size_t kept_count = 0;

std::span<Raised> raised() { return std::span(kept).first(kept_count); }

void note(int resource, const rlimit& before, const rlimit& now) {
  const auto known = std::ranges::find(raised(), resource, &Raised::resource);
  if (known != raised().end()) {
    known->now = now;
    return;
  }
  CHECK(kept_count < kept.size());
  kept[kept_count++] = {resource, before, now};
}

}  // namespace

bool raise_limit(int resource, rlim_t least) {
  rlimit before = {};
  if (::getrlimit(resource, &before) != 0 || before.rlim_cur >= least) return true;
  rlimit now = {least, std::max(least, before.rlim_max)};
  const bool is_allowed = ::setrlimit(resource, &now) == 0;
  if (!is_allowed) now = {before.rlim_max, before.rlim_max};
  if (is_allowed || ::setrlimit(resource, &now) == 0) note(resource, before, now);
  return is_allowed;
}

void restore_limits() {
  for (const Raised& each : raised()) ::setrlimit(each.resource, &each.before);
}

RestoredLimits::RestoredLimits() {
  for (const Raised& each : raised()) {
    const rlimit limit = {each.before.rlim_cur, each.now.rlim_max};
    ::setrlimit(each.resource, &limit);
  }
}

RestoredLimits::~RestoredLimits() {
  for (const Raised& each : raised()) ::setrlimit(each.resource, &each.now);
}

namespace {

// Returns the environment with LC_ALL=C, and with `scratch` for the temporary files of the program, which it may leave
// behind when it is killed.
std::vector<std::string> environment_of(const std::string& scratch) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("LC_ALL=") && !text.starts_with("TMPDIR=")) out.emplace_back(text);
  }
  out.emplace_back("LC_ALL=C");
  out.emplace_back("TMPDIR=" + scratch);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  const char* variable = std::getenv("PATH");
  const std::string_view directories = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" : variable;
  for (const std::string_view directory : split(directories, ':')) {
    std::string path(directory.empty() ? "." : directory);
    path += '/';
    path += name;
    if (is_file(path) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

namespace {

// Blocks SIGCHLD and the signals that would end this process, for sigtimedwait(2).
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    for (const int signal : kEndingSignals) {
      struct sigaction action = {};
      ::sigaction(signal, nullptr, &action);
      if (action.sa_handler == SIG_DFL) sigaddset(&set_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }
  // Returns the number of a signal, 0 after a tenth of a second without one.
  int wait() const {
    const timespec time = {0, 100'000'000};
    return std::max(::sigtimedwait(&set_, nullptr, &time), 0);
  }

 private:
  sigset_t set_ = {};
  sigset_t before_ = {};
};

struct Redirection {
  int fd;
  const char* path;
  int flags;
};

void set_limit(__rlimit_resource resource, uint64_t bytes) {
  const rlimit limit = {bytes, bytes};
  if (bytes != 0) ::setrlimit(resource, &limit);
}

// In the child: sets all up and executes the program; returns the error if it cannot.
int execute(std::vector<char*> words, std::vector<char*> environment, std::span<const Redirection> redirections,
            const sigset_t& mask, const ProcessLimits& limits) {
  ::setpgid(0, 0);
  for (const auto& [fd, path, flags] : redirections) {
    const int opened = ::open(path, flags, 0600);
    if (opened < 0 || ::dup2(opened, fd) < 0) return errno;
    if (opened != fd) ::close(opened);
  }
  set_limit(RLIMIT_FSIZE, limits.file_bytes);
  set_limit(RLIMIT_AS, limits.memory_bytes);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words.data(), environment.data());
  return errno;
}

Result<pid_t> spawn(std::vector<std::string> words, const std::string& scratch,
                    std::span<const Redirection> redirections, const sigset_t& mask, const ProcessLimits& limits) {
  std::vector<std::string> environment = environment_of(scratch);
  ExecReport report = TRY(ExecReport::make());
  const pid_t child = TRY(start_child(
      [&] { return report.fail_with(execute(pointers(words), pointers(environment), redirections, mask, limits)); },
      {.failure = "cannot run " + words[0]}));
  report.close_writing_end();
  const int code = report.wait([] { return false; }).value_or(0);
  if (code == 0) return child;
  wait_for_child(child);
  return fail_errno("cannot run " + words[0], code);
}

void kill_group(pid_t child) {
  ::kill(-child, SIGKILL);
  wait_for_child(child);
}

// Returns the status of waitpid(2).
Result<int> wait_for(pid_t child, const BlockedSignals& signals, uint64_t seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0) return fail_errno("cannot wait for a process", errno);
    if (seconds != 0 && std::chrono::steady_clock::now() >= end) {
      kill_group(child);
      return fail("it takes too long", ETIME);
    }
    const int signal = signals.wait();
    if (signal == 0 || signal == SIGCHLD) continue;
    kill_group(child);
    ::raise(signal);
    ::sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
  }
}

}  // namespace

Result<ProcessOutput> run_process(const std::vector<std::string>& argv, const std::string& scratch,
                                  const ProcessLimits& limits) {
  const std::string out_path = scratch + "/stdout", err_path = scratch + "/stderr";
  const BlockedSignals signals;
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  const Redirection redirections[] = {{STDIN_FILENO, "/dev/null", O_RDONLY},
                                      {STDOUT_FILENO, out_path.c_str(), kWrite},
                                      {STDERR_FILENO, err_path.c_str(), kWrite}};
  const pid_t child = TRY(spawn(argv, scratch, redirections, signals.before(), limits));
  const int status = TRY(wait_for(child, signals, limits.seconds));
  ProcessOutput output;
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  output.out = TRY(read_file(out_path));
  output.err = TRY(read_file(err_path));
  return output;
}

namespace {

Result<std::string> make_directory() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/espy.XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("cannot make a directory " + path, errno);
  return path;
}

// For nftw(3). Returns 0, or the error.
int remove_entry(const char* path, const struct stat*, int, FTW*) {
  return ::remove(path) == 0 || errno == ENOENT ? 0 : errno;
}

// A compiler that outlives this process may still write there, faster than files are removed: it finds nothing at the
// path any more, and while it writes by an open directory, this tries again. Returns false if something is left.
bool remove_directory(const std::string& path) {
  const std::string moved = path + ".removed";
  const bool is_moved = ::rename(path.c_str(), moved.c_str()) == 0 || errno == ENOENT;
  const std::string& left = is_moved ? moved : path;
  constexpr int kMaxAttempts = 3000;
  constexpr int kMaxDescriptors = 2;  // however deep it is
  constexpr timespec kPause = {0, 10'000'000};
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const int error = ::nftw(left.c_str(), remove_entry, kMaxDescriptors, FTW_DEPTH | FTW_PHYS);
    if (error != ENOTEMPTY && error != EEXIST) break;
    ::nanosleep(&kPause, nullptr);
  }
  return ::access(left.c_str(), F_OK) != 0 && errno == ENOENT;
}

}  // namespace

Result<ScratchDirectory> ScratchDirectory::make() {
  return ScratchDirectory(TRY(Janitor::start(make_directory, [](const std::string& made) { remove_directory(made); })));
}

ScratchDirectory::~ScratchDirectory() {
  if (!path().empty() && !remove_directory(path())) janitor_.outlive();  // it has descriptors
}

std::vector<uint32_t> numbered_entries(const std::string& directory) {
  std::vector<uint32_t> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (const auto number = parse_int(it->path().filename().string())) out.push_back(static_cast<uint32_t>(*number));
  return out;
}

Result<ExecReport> ExecReport::make() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  return ExecReport(ends[0], ends[1]);
}

int ExecReport::fail_with(int code) {
  constexpr int kNotExecuted = 127;  // as of a shell
  [[maybe_unused]] const ssize_t put = ::write(writing_.get(), &code, sizeof(code));
  return kNotExecuted;
}

std::optional<int> ExecReport::wait(bool (*is_over)()) {
  constexpr int kLongestWaitMs = 100;  // a signal may come right before poll()
  pollfd waited = {reading_.get(), POLLIN, 0};
  while (::poll(&waited, 1, kLongestWaitMs) <= 0)
    if (is_over()) return std::nullopt;
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(reading_.get(), &code, sizeof(code))) < 0 && errno == EINTR) {
  }
  reading_.reset();
  return got == static_cast<ssize_t>(sizeof(code)) ? code : 0;
}

}  // namespace espy
