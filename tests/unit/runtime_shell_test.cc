// Commands of system(), each in a child process, whose signals and end request they are.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>

#include "base/end_request.h"
#include "runtime/shell.h"
#include "runtime/signals.h"

namespace espy::runtime {
namespace {

std::string output_of(const std::string& command) {
  std::string out;
  EXPECT_TRUE(run_shell_command(command, true, [&](std::string_view text) { out += text; })) << command;
  return out;
}

int exit_status_of_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Shell, ReturnsWhatACommandWrites) {
  EXPECT_EQ(output_of("echo a; echo b >&2; echo c"), "a\nc\n");
  EXPECT_EQ(output_of("exit 3"), "");
  EXPECT_EQ(output_of("kill -KILL $$"), "");
}

TEST(Shell, GivesLongOutputInPieces) {
  size_t pieces = 0, bytes = 0;
  const auto count = [&](std::string_view text) {
    ++pieces;
    bytes += text.size();
  };
  EXPECT_TRUE(run_shell_command("head -c 5000000 /dev/zero", true, count));
  EXPECT_EQ(bytes, 5'000'000u);
  EXPECT_GT(pieces, 3u);
  EXPECT_LT(pieces, 7u);
}

// The line of /proc/PID/status, as a number.
uint64_t signals_of_command(const std::string& key) {
  const std::string line = output_of("exec grep " + key + " /proc/self/status");
  return line.starts_with(key + ":\t") ? std::stoull(line.substr(key.size() + 2), nullptr, 16) : UINT64_MAX;
}

uint64_t bit_of(int signal) { return uint64_t{1} << (signal - 1); }
constexpr uint64_t kStandardSignals = 0x7fff'ffff;  // those behind are the C library's own

TEST(Shell, ACommandStartsWithCleanSignals) {
  EXPECT_EQ(exit_status_of_child([] {
              for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
              ::signal(SIGINT, SIG_IGN);  // as a shell does for `command &`
              ::signal(SIGHUP, SIG_IGN);  // as nohup does
              Signals signals(true);
              if (signals_of_command("SigBlk") != 0) return 1;
              return (signals_of_command("SigIgn") & kStandardSignals) == bit_of(SIGHUP) ? 0 : 2;
            }),
            0);
}

// The command sends the signal itself, writes, and runs on.
TEST(Shell, ACommandThatRunsOnAfterTheEndWasRequestedIsEnded) {
  EXPECT_EQ(exit_status_of_child([] {
              Signals signals(false);
              std::string out;
              const Status done = run_shell_command("kill -TERM $PPID; echo a; exec sleep 100", true,
                                                    [&](std::string_view text) { out += text; });
              int status = 0;
              const bool was_ended =
                  ::waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
              return !done && done.error().code == ETIMEDOUT && out == "a\n" && was_ended ? 0 : 1;
            }),
            0);
}

TEST(Shell, ACommandMayFinishAfterTheEndWasRequested) {
  EXPECT_EQ(exit_status_of_child([] {
              Signals signals(false);
              request_end();
              std::string out;
              const Status done =
                  run_shell_command("sleep 1.2; echo a", false, [&](std::string_view text) { out += text; });
              return done && out == "a\n" ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace espy::runtime
