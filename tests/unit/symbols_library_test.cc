#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "symbols/library.h"
#include "symbols/symbols.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using ::testing::ElementsAreArray;
using testing::has_tool;
using ::testing::HasSubstr;
using testing::output_of;
using testing::TempDir;

TEST(LdCache, SaysWhatLdconfigSays) {
  const auto bytes = read_file("/etc/ld.so.cache");
  if (!bytes || !has_tool("ldconfig")) GTEST_SKIP() << "no glibc";
  std::vector<std::pair<std::string, std::string>> expected, found;
  // "\tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1"
  std::istringstream lines(output_of("ldconfig -p"));
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(" => ");
    const bool is_64bit = line.find("x86-64") != line.npos || line.find("AArch64") != line.npos;
    if (arrow == line.npos || !is_64bit || line.find("hwcap") != line.npos) continue;
    expected.emplace_back(line.substr(1, line.find(' ', 1) - 1), line.substr(arrow + 4));
  }
  for (const CachedLibrary& library : parse_ld_cache(kernel::host_arch(), *bytes))
    found.emplace_back(library.name, library.path);
  ASSERT_FALSE(expected.empty());
  EXPECT_THAT(found, ElementsAreArray(expected));
}

TEST(LdCache, BrokenOnesAreEmpty) {
  const auto bytes = read_file("/etc/ld.so.cache");
  if (!bytes) GTEST_SKIP() << "no glibc";
  EXPECT_TRUE(parse_ld_cache(kernel::host_arch(), "").empty());
  EXPECT_TRUE(parse_ld_cache(kernel::host_arch(), "glibc-ld.so.cache1.1").empty());
  EXPECT_TRUE(parse_ld_cache(kernel::host_arch(), std::string_view(*bytes).substr(0, 100)).empty());
}

TEST(ResolveLibrary, Names) {
  const std::string libc = resolve_library("libc").value_or("");
  EXPECT_THAT(libc, HasSubstr("libc.so.6"));
  EXPECT_EQ(resolve_library("c").value_or(""), libc);
  EXPECT_EQ(resolve_library("libc.so.6").value_or(""), libc);
  EXPECT_EQ(resolve_library("libc.so").value_or(""), libc);
  EXPECT_THAT(resolve_library("sh").value_or(""), ::testing::EndsWith("/sh"));
}

TEST(ResolveLibrary, Paths) {
  const TempDir dir;
  const std::string file = dir.write("file", "x");
  EXPECT_EQ(resolve_library(file).value_or(""), file);
  const auto missing = resolve_library(dir.path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_EQ(missing.error().message, "cannot open " + dir.path("missing") + ": No such file or directory");
  EXPECT_EQ(resolve_library(dir.path("")).error().message, dir.path("") + " is not a file");
}

TEST(ResolveLibrary, UnknownName) {
  const auto unknown = resolve_library("no-such-command-or-library");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "there is no command or library named no-such-command-or-library");
  EXPECT_FALSE(resolve_library(""));
}

TEST(ResolveLibrary, MappedFilesOfAProcessComeFirst) {
  const TempDir dir;
  const std::string path = dir.build("libespytest.so.7", "int f(void) { return 1; }", "-shared -fPIC");
  const std::string program = dir.build(
      "program",
      "#include <unistd.h>\nint f(void); int main() { char c; write(1, \"\\n\", 1); return read(0, &c, 1) + f(); }",
      "-Wl,--no-as-needed -Wl,-rpath," + dir.path("") + " " + path);
  EXPECT_FALSE(resolve_library("espytest"));
  testing::Child child({program});
  child.read_line();
  for (const char* name : {"espytest", "libespytest", "libespytest.so", "libespytest.so.7"}) {
    EXPECT_EQ(resolve_library(name, child.pid()).value_or(""), path) << name;
  }
  EXPECT_EQ(resolve_library("program", child.pid()).value_or(""), program);
  EXPECT_FALSE(resolve_library("libespytest.so.8", child.pid()));
}

}  // namespace
}  // namespace espy::symbols
