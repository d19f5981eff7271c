#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/files.h"
#include "base/process.h"

namespace espy {
namespace {

// $PATH, put back at the end.
class PathVariable {
 public:
  PathVariable() : before_(std::getenv("PATH")) {}
  ~PathVariable() { ::setenv("PATH", before_.c_str(), 1); }
  static void set(const std::string& value) { ::setenv("PATH", value.c_str(), 1); }

 private:
  std::string before_;
};

void write_program(const std::string& path, unsigned mode) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode));
  ASSERT_TRUE(fd.valid());
}

struct Pipe {
  OwnedFd reader, writer;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {OwnedFd(ends[0]), OwnedFd(ends[1])};
}

TEST(StartChild, EndsWithTheStatusOfItsBody) {
  const auto child = start_child([] { return 7; });
  ASSERT_TRUE(child);
  const auto status = wait_for_child(*child);
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  EXPECT_FALSE(wait_for_child(*child));
  EXPECT_TRUE(has_child_ended(*child));
}

TEST(StartChild, SharesDescriptorsIfWanted) {
  for (const bool shares : {false, true}) {
    const Pipe pipe = make_pipe();
    const int fd = ::dup(pipe.reader.get());
    const auto child = start_child([&] { return ::close(fd); }, {.shares_descriptors = shares});
    ASSERT_TRUE(child && wait_for_child(*child));
    EXPECT_EQ(::close(fd) != 0, shares);
  }
}

TEST(StartChild, EndsWithItsParentIfWanted) {
  Pipe pipe = make_pipe();
  const auto wait = [] {
    ::pause();
    return 0;
  };
  const auto parent = start_child([&] { return start_child(wait, {.parent_end_signal = SIGKILL}) ? 0 : 1; });
  ASSERT_TRUE(parent && wait_for_child(*parent));
  pipe.writer.reset();
  char byte = 0;
  EXPECT_EQ(::read(pipe.reader.get(), &byte, 1), 0);  // once the last writer has ended
}

TEST(EndChild, WaitsForItsEnd) {
  const auto child = start_child([] {
    ::pause();
    return 0;
  });
  ASSERT_TRUE(child);
  EXPECT_FALSE(has_child_ended(*child));
  end_child(*child);
  EXPECT_FALSE(wait_for_child(*child));
}

TEST(StartOrphan, IsNoChild) {
  const Pipe pipe = make_pipe();
  ASSERT_TRUE(start_orphan([&] { return ::write(pipe.writer.get(), "x", 1) == 1 ? 0 : 1; }));
  char byte = 0;
  EXPECT_EQ(::read(pipe.reader.get(), &byte, 1), 1);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(FindProgram, TakesTheFirstExecutableFileInPath) {
  const PathVariable variable;
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  const std::string root = scratch->path();
  for (const char* name : {"/a", "/b", "/c", "/d", "/a/tool"}) ASSERT_EQ(::mkdir((root + name).c_str(), 0700), 0);
  write_program(root + "/b/tool", 0600);
  write_program(root + "/c/tool", 0700);
  write_program(root + "/d/tool", 0700);
  PathVariable::set(root + "/a:" + root + "/b:" + root + "/c:" + root + "/d");
  EXPECT_EQ(find_program("tool"), root + "/c/tool");
  EXPECT_EQ(find_program("no-such-tool"), std::nullopt);
}

TEST(FindProgram, AnEmptyDirectoryIsTheWorkingDirectory) {
  const PathVariable variable;
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  write_program(scratch->path() + "/tool", 0700);
  PathVariable::set(":/nonexistent");
  char before[4096];
  ASSERT_NE(::getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(::chdir(scratch->path().c_str()), 0);
  EXPECT_EQ(find_program("tool"), "./tool");
  ASSERT_EQ(::chdir(before), 0);
}

TEST(RunProcess, EndsTheGroupAtTheLimitOfTime) {
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  // The child of the shell keeps a lock on the file for as long as it lives.
  const std::string lock = scratch->path() + "/lock";
  const auto done = run_process({"sh", "-c", "flock " + lock + " sleep 100; true"}, scratch->path(), {.seconds = 1});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ETIME);
  const auto free = run_process({"flock", lock, "true"}, scratch->path(), {.seconds = 60});
  EXPECT_TRUE(free && free->status == 0);
}

TEST(RunProcess, LimitsFilesAndMemory) {
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  const auto much = run_process({"head", "-c", "1000000", "/dev/zero"}, scratch->path(), {.file_bytes = 4096});
  ASSERT_TRUE(much);
  EXPECT_NE(much->status, 0);
  EXPECT_EQ(much->out.size(), 4096u);
  const auto limit = run_process({"sh", "-c", "ulimit -v"}, scratch->path(), {.memory_bytes = 1 << 30});
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->out, "1048576\n");
}

TEST(RunProcess, ASignalEndsTheGroupAndThisProcess) {
  const auto scratch = ScratchDirectory::make();
  ASSERT_TRUE(scratch);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto done = run_process({"sh", "-c", "kill -TERM $PPID; sleep 100"}, scratch->path());
    ::_exit(done ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

}  // namespace
}  // namespace espy
