#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/process.h"

namespace espy {
namespace {

bool is_gone_soon(const std::string& path) {
  for (int i = 0; i < 3000 && std::filesystem::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !std::filesystem::exists(path);
}

// Makes files in the directory until it is gone.
pid_t start_writer(const std::string& directory) {
  const pid_t writer = ::fork();
  if (writer != 0) return writer;
  for (int i = 0;; ++i) {
    const OwnedFd file(::open((directory + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file.valid()) ::_exit(0);
  }
}

class KilledOwner : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ScratchDirectory, KilledOwner, testing::Bool());

TEST_P(KilledOwner, LeavesNoDirectory) {
  const bool has_writer = GetParam();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto scratch = ScratchDirectory::make();
    if (!scratch || !write_all(ends[1], scratch->path())) ::_exit(1);
    ::close(ends[1]);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char path[4096] = {};
  ASSERT_GT(::read(ends[0], path, sizeof(path) - 1), 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  const pid_t writer = has_writer ? start_writer(path) : 0;
  while (has_writer && !std::filesystem::exists(std::string(path) + "/100"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(is_gone_soon(path)) << path;
  EXPECT_TRUE(is_gone_soon(std::string(path) + ".removed")) << path;
  if (has_writer) ::kill(writer, SIGKILL);
  if (has_writer) ::waitpid(writer, nullptr, 0);
  ::close(ends[0]);
}

// The owner may have as many open as it may have, and a directory can be deeper than that.
class StarvedOwner : public testing::TestWithParam<rlim_t> {};
INSTANTIATE_TEST_SUITE_P(ScratchDirectory, StarvedOwner, testing::Values(0, 16));

TEST_P(StarvedOwner, LeavesNoDirectory) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto scratch = ScratchDirectory::make();
    if (!scratch || !write_all(ends[1], scratch->path())) ::_exit(1);
    std::string deep = scratch->path();
    for (int i = 0; i < 100; ++i) std::filesystem::create_directory(deep += "/d");
    const rlimit few = {GetParam(), GetParam()};
    ::setrlimit(RLIMIT_NOFILE, &few);
    { const ScratchDirectory ended = std::move(*scratch); }
    ::_exit(0);
  }
  ::close(ends[1]);
  char path[4096] = {};
  ASSERT_GT(::read(ends[0], path, sizeof(path) - 1), 0);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(is_gone_soon(path)) << path;
  EXPECT_TRUE(is_gone_soon(std::string(path) + ".removed")) << path;
  ::close(ends[0]);
}

TEST(Janitor, CleansNothingIfItIsEnded) {
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  const std::string kept = scratch->path() + "/kept";
  {
    const auto janitor = Janitor::start(
        [&]() -> Result<std::string> {
          std::filesystem::create_directory(kept);
          return kept;
        },
        [](const std::string& made) { std::filesystem::remove(made); });
    ASSERT_TRUE(janitor);
    EXPECT_EQ(janitor->made(), kept);
  }
  EXPECT_TRUE(std::filesystem::exists(kept));
}

TEST(Janitor, ReturnsTheErrorOfMaking) {
  const auto janitor =
      Janitor::start([]() -> Result<std::string> { return fail("in vain", EEXIST); }, [](const std::string&) {});
  ASSERT_FALSE(janitor);
  EXPECT_EQ(janitor.error().message, "in vain");
  EXPECT_EQ(janitor.error().code, EEXIST);
}

// The reader of a pipe waits for all of its writers.
TEST(Janitor, KeepsNoDescriptorOpen) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  ::close(ends[1]);
  pollfd closed = {ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 30000), 1);
  EXPECT_NE(closed.revents & POLLHUP, 0);
  ::close(ends[0]);
}

}  // namespace
}  // namespace espy
