#include "cli/recorded_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/end_request.h"
#include "base/fd.h"
#include "base/untrusted_file.h"
#include "cli/replay_host.h"
#include "cli/run_recorder.h"
#include "cli/run_script.h"

namespace espy::cli {

namespace {

// The messages between the two processes. The recorder sends kAttached once the probes are attached, and kWritten after
// each block; the process that shows sends kGo once the script is checked against the recording.
constexpr char kAttached = 'a', kWritten = 'w', kGo = 'g';

// Ends the recorder. A run takes it also if the caller of espy ignores it, as runtime::Signals says.
constexpr int kEndSignal = SIGINT;

// An end of a socket between the two.
class Link {
 public:
  explicit Link(OwnedFd socket) : socket_(std::move(socket)) {}

  // Does not block. A message that does not fit is dropped: the peer has unread ones, which wake it up.
  void tell(char word) const { ::send(socket_.get(), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

  // Waits for a word, and takes all that are there. False if the other process has ended, or if `on_end_request`, which
  // is called once the end of the run is requested, at least once, says that it is waited no longer.
  bool wait_for(char word, const std::function<bool()>& on_end_request) const {
    for (;;) {
      if (is_end_requested() && on_end_request()) return false;
      pollfd polled = {socket_.get(), POLLIN, 0};
      if (::poll(&polled, 1, kLongestWaitMs) <= 0) continue;
      char words[256];
      const ssize_t got = ::recv(socket_.get(), words, sizeof(words), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (got > 0 && std::string_view(words, static_cast<size_t>(got)).find(word) != std::string_view::npos)
        return true;
    }
  }

 private:
  static constexpr int kLongestWaitMs = 1000;  // a signal may come right before poll()

  OwnedFd socket_;
};

Status check_options(const Options& options) {
  if (!options.recordings.empty()) return fail("--record takes the events of this machine, not those of a recording");
  const bool is_other_run = options.config.runs_tests || options.config.runs_benchmarks || options.session.is_dry_run;
  const bool is_viewed = options.listen || options.watch_interval_ns != 0;
  const bool has_cost = options.shows_cost || options.session.budget_cpus > 0 || options.session.checks_cost;
  if (is_other_run || has_cost || is_viewed || !options.user.empty() || !options.dump.empty())
    return fail(
        "--record goes with a plain run only: not with --test, --bench, --dry-run, --dump, --cost, --budget, "
        "--check-cost, --listen, --watch or --user",
        0, "`espy record` can record at the same time");
  return {};
}

// ---- The recorder

int record(const Options& options, const Host& host, const Link& link) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  RecordWishes wishes;
  wishes.reads.emplace();
  e.config.has_child = options.child_command.has_value();  // it is started later
  if (const Status added = add_reads(options, e, *wishes.reads); !added) return EXIT_FAILURE;
  e.config.has_child = false;
  wishes.depth = std::min(kMaxRecordDepth, wishes.reads->depth);
  if (wishes.reads->targets.empty())
    return complain({"the script has no events to record", 0, "begin, end and interval are there in any recording"});
  auto script = write_record_script({}, wishes, e);
  if (!script) return complain(script.error());
  if (!options.no_warnings) show_warnings(*script);
  RecordPlan::Reader reader;
  reader.needs_time = wishes.reads->has_timers;
  reader.on_ready = [&]() -> Status {
    link.tell(kAttached);
    // The end may be requested before the word is read: after exit() in begin. Then the recording is empty.
    bool is_ending = false;
    if (!link.wait_for(kGo, [&] { return is_ending = true; }) && !is_ending) ::_exit(EXIT_FAILURE);
    return {};
  };
  reader.on_written = [&] { link.tell(kWritten); };
  const std::string command = fmt::format("espy --record {} {}", *options.record_file, options.file.value_or("-e ..."));
  return run_recorder(options, host, e, wishes, std::move(*script),
                      {*options.record_file, command, options.ring, &reader});
}

[[noreturn]] void run_as_recorder(Options options, const Host& host, const Link& link, pid_t parent) {
  ::signal(kEndSignal, [](int) {});  // outside of the run; then the socket tells the end of the other process
  ::prctl(PR_SET_PDEATHSIG, kEndSignal);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  options.quiet = true;
  const int status = record(options, host, link);
  std::fflush(stdout);
  std::fflush(stderr);
  ::_exit(status);
}

// ---- The process that shows

Options options_of_replay(const Options& options) {
  Options out = options;
  out.recordings = {*options.record_file};
  out.record_file.reset();
  out.child_command.reset();
  out.cgroup.clear();
  out.container.clear();
  out.config.pid.reset();
  out.config.follows = false;
  out.session.watched_pid.reset();
  out.shown_diagnostic = as_of_recording;
  return out;
}

int show(const Options& options, const Link& link, pid_t recorder) {
  bool is_ended = false;
  // By one signal: a second one would end it at once. It may have had that of the terminal.
  const std::function<bool()> end_recorder = [&] {
    if (!std::exchange(is_ended, true)) ::kill(recorder, kEndSignal);
    return false;  // it is waited for the rest
  };
  if (!link.wait_for(kAttached, end_recorder)) return EXIT_FAILURE;  // it has said why
  Following following;
  following.wait = [&] { return link.wait_for(kWritten, end_recorder); };
  following.on_checked = [&]() -> Status {
    link.tell(kGo);
    return {};
  };
  following.on_end = [&] { is_ended = true; };
  const Host host = following_host(following);
  const auto environment = host.open(options);
  const int status = environment ? run_script(options, **environment, host.prepare) : complain(environment.error());
  end_recorder();  // after exit(), or an error of the script
  return status;
}

int status_of(pid_t process) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(process, &status, 0)) < 0 && errno == EINTR) {
  }
  return ended == process && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

}  // namespace

int run_recorded(const Options& options, const Host& host) {
  if (const Status good = check_options(options); !good) return complain(good.error());
  Options whole = options;
  if (!options.program_text && !options.tool && options.file == "-") {  // both read it
    auto text = read_stream("/dev/stdin", kMaxTextBytes);
    if (!text) return complain(text.error());
    whole.program_text = std::move(*text);
  }
  int sockets[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return complain({fmt::format("cannot start a recorder: error {}", errno)});
  OwnedFd own(sockets[0]), other(sockets[1]);
  const pid_t parent = ::getpid();
  const pid_t recorder = ::fork();
  if (recorder < 0) return complain({fmt::format("cannot start a recorder: error {}", errno)});
  if (recorder == 0) {
    own.reset();
    run_as_recorder(std::move(whole), host, Link(std::move(other)), parent);
  }
  other.reset();
  const int shown = show(options_of_replay(whole), Link(std::move(own)), recorder);
  const int recorded = status_of(recorder);
  return shown != 0 ? shown : recorded;
}

}  // namespace espy::cli
