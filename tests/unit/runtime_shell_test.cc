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
#include "base/files.h"
#include "base/process.h"
#include "runtime/child.h"
#include "runtime/run_control.h"

namespace espy::runtime {
namespace {

constexpr uint64_t kMuch = uint64_t{1} << 40;
constexpr ShellLimits kFree{.output_bytes = kMuch};

std::string output_of(const std::string& command) {
  std::string out;
  const auto done = run_shell_command(command, kFree, [&](std::string_view text) { out += text; });
  EXPECT_TRUE(done && done->status && !done->was_cut) << command;
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
  EXPECT_TRUE(run_shell_command("head -c 5000000 /dev/zero", kFree, count));
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
  EXPECT_EQ(
      exit_status_of_child([] {
        Signals signals(false);
        std::string out;
        const auto done = run_shell_command("kill -TERM $PPID; echo a; exec sleep 100", kFree,
                                            [&](std::string_view text) { out += text; });
        int status = 0;
        const bool was_ended = ::waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        return done && !done->status && done->status.error().code == ETIMEDOUT && out == "a\n" && was_ended ? 0 : 1;
      }),
      0);
}

TEST(Shell, ACommandMayFinishAfterTheEndWasRequested) {
  EXPECT_EQ(exit_status_of_child([] {
              Signals signals(false);
              request_end();
              std::string out;
              const auto done =
                  run_shell_command("sleep 1.2; echo a", {.output_bytes = kMuch, .ends_after_request = false},
                                    [&](std::string_view text) { out += text; });
              return done && done->status && out == "a\n" ? 0 : 1;
            }),
            0);
}

TEST(Shell, ACommandIsEndedAtTheLimitOfTime) {
  EXPECT_EQ(exit_status_of_child([] {
              std::string out;
              const auto done = run_shell_command("echo a; exec sleep 100", {.seconds = 1, .output_bytes = kMuch},
                                                  [&](std::string_view text) { out += text; });
              int status = 0;
              const bool was_ended =
                  ::waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
              const bool is_told = done && !done->status && done->status.error().code == ETIME &&
                                   done->status.error().message ==
                                       "`echo a; exec sleep 100` was ended after "
                                       "max_system_seconds = 1";
              return is_told && out == "a\n" && was_ended ? 0 : 1;
            }),
            0);
}

TEST(Shell, ACommandThatClosesItsOutputIsWaitedForUpToTheLimit) {
  const auto done =
      run_shell_command("exec sleep 100 >&-", {.seconds = 1, .output_bytes = kMuch}, [](std::string_view) {});
  ASSERT_TRUE(done);
  ASSERT_FALSE(done->status);
  EXPECT_EQ(done->status.error().code, ETIME);
}

// The shell ends at once; what it leaves behind is not ended.
TEST(Shell, OutputThatIsHeldOpenIsReadUpToTheLimit) {
  std::string out;
  const auto done = run_shell_command("sleep 100 & echo $!", {.seconds = 1, .output_bytes = kMuch},
                                      [&](std::string_view text) { out += text; });
  ASSERT_TRUE(done);
  ASSERT_FALSE(done->status);
  EXPECT_EQ(done->status.error().message,
            "`sleep 100 & echo $!` has ended, but not what it started: its output is read no longer, after "
            "max_system_seconds = 1");
  EXPECT_EQ(::kill(std::stoi(out), SIGKILL), 0);
}

TEST(Shell, OutputIsCutAtTheLimitOfBytesAndTheCommandGoesOn) {
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  size_t bytes = 0;
  const auto done =
      run_shell_command("yes | head -c 3000000; touch " + scratch->path() + "/ended", {.output_bytes = 2'000'000},
                        [&](std::string_view text) { bytes += text.size(); });
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->status);
  EXPECT_TRUE(done->was_cut);
  EXPECT_EQ(bytes, 2'000'000u);
  EXPECT_TRUE(is_file(scratch->path() + "/ended"));
}

}  // namespace
}  // namespace espy::runtime
