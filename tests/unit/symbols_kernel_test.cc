#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "symbols/kernel_symbols.h"
#include "symbols/symbols.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::output_of;
using testing::TempDir;

constexpr std::string_view kText =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81001000 t helper\n"
    "ffffffff81002000 T vfs_read\n"
    "ffffffff81003000 T vfs_read_more\n"
    "ffffffffc0200000 t in_module\t[nf_nat]\n"
    "ffffffffc0100000 t T\t[early]\n";

TEST(KernelSymbols, ByAddress) {
  const TempDir dir;
  KernelSymbols symbols(dir.write("kallsyms", kText));
  EXPECT_FALSE(symbols.at_or_before(0));
  EXPECT_FALSE(symbols.at_or_before(0xffffffff80ffffff));
  EXPECT_EQ(symbols.at_or_before(0xffffffff81000004)->name, "_stext");  // the first of two
  EXPECT_EQ(symbols.at_or_before(0xffffffff81002fff)->name, "vfs_read");
  EXPECT_EQ(symbols.at_or_before(0xffffffff81002fff)->address, 0xffffffff81002000);
  EXPECT_EQ(symbols.at_or_before(0xffffffff81002fff)->module, "");
  EXPECT_EQ(symbols.at_or_before(0xffffffffc0100010)->name, "T");  // modules are not sorted
  EXPECT_EQ(symbols.at_or_before(0xffffffffc0200010)->module, "nf_nat");
  EXPECT_FALSE(symbols.at_or_before(0xffffffffff600000));  // far behind everything
}

TEST(KernelSymbols, ByName) {
  const TempDir dir;
  KernelSymbols symbols(dir.write("kallsyms", kText));
  EXPECT_EQ(symbols.find("vfs_read")->address, 0xffffffff81002000);
  EXPECT_EQ(symbols.find("vfs_read_more")->address, 0xffffffff81003000);
  EXPECT_EQ(symbols.find("_stext")->address, 0xffffffff81000000);
  EXPECT_EQ(symbols.find("T")->module, "early");
  EXPECT_FALSE(symbols.find("vfs"));
  EXPECT_FALSE(symbols.find(""));
  EXPECT_FALSE(symbols.find("read"));
}

TEST(KernelSymbols, MissingOrHidden) {
  KernelSymbols missing("/nonexistent/kallsyms");
  EXPECT_FALSE(missing.find("vfs_read"));
  EXPECT_FALSE(missing.at_or_before(0xffffffff81002000));
  const TempDir dir;
  KernelSymbols hidden(dir.write("kallsyms", "0000000000000000 T vfs_read\n0000000000000000 T vfs_write\n"));
  EXPECT_FALSE(hidden.at_or_before(0x10));
}

TEST(Kernel, LiveKernelBothWays) {
  const std::string line = output_of("grep -m1 ' T vfs_read$' /proc/kallsyms");
  const uint64_t address = std::strtoull(line.c_str(), nullptr, 16);
  if (address == 0) GTEST_SKIP() << "the kernel hides its addresses";
  Symbolizer symbols;
  const auto found = symbols.kernel(address + 5);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "vfs_read");
  EXPECT_EQ(found->offset, 5u);
  EXPECT_EQ(found->address, address);
  EXPECT_FALSE(symbols.kernel(0x1000));
}

// Each line of the live kallsyms must find an address, and its own one unless it has an alias before it.
TEST(Kernel, EveryLineIsFoundByAddress) {
  const auto text = read_file("/proc/kallsyms");
  ASSERT_TRUE(text);
  Symbolizer symbols;
  std::istringstream lines(*text);
  size_t seen = 0;
  for (std::string line; std::getline(lines, line); ++seen) {
    if (seen % 64 != 0) continue;
    const uint64_t address = std::strtoull(line.c_str(), nullptr, 16);
    if (address == 0) continue;
    const auto found = symbols.kernel(address);
    ASSERT_TRUE(found) << line;
    EXPECT_EQ(found->address, address) << line;
    EXPECT_EQ(found->offset, 0u) << line;
  }
}

}  // namespace
}  // namespace espy::symbols
