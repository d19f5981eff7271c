#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "base/fd.h"
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

}  // namespace
}  // namespace espy
