#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "symbols/dwarf/line_table.h"
#include "symbols/elf_image.h"
#include "symbols_support.h"

namespace espy::symbols::dwarf {
namespace {

using symbols::testing::has_tool;
using symbols::testing::TempDir;

constexpr const char* kSource =
    "#include <stdio.h>\n"
    "static inline int twice(int x) { return x * 2; }\n"
    "int work(int n) {\n"
    "  int sum = 0;\n"
    "  for (int i = 0; i < n; ++i)\n"
    "    sum += twice(i) + printf(\"%d\", i);\n"
    "  return sum;\n"
    "}\n"
    "int main(void) { return work(3); }\n";

// Returns the number of rows that libdw reads of the only unit.
size_t rows_by_libdw(const std::string& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Dwarf* dwarf = dwarf_begin(fd.get(), DWARF_C_READ);
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die = {};
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  if (dwarf_get_units(dwarf, nullptr, &unit, nullptr, nullptr, &die, nullptr) == 0)
    dwarf_getsrclines(&die, &lines, &count);
  dwarf_end(dwarf);
  return count;
}

class LineTable : public ::testing::TestWithParam<const char*> {};

TEST_P(LineTable, HasTheRowsThatLibdwReads) {
  if (!has_tool("cc")) GTEST_SKIP() << "there is no C compiler";
  const TempDir directory;
  const std::string path = directory.build("x.o", kSource, std::string("-c ") + GetParam());
  // An object file has relocations, which do not change the number of rows.
  const auto image = ElfImage::open(path);
  const auto size = line_table_size(image->section_bytes(".debug_line"), 0);
  ASSERT_TRUE(size);
  EXPECT_GT(size->rows, 5U);
  EXPECT_EQ(size->rows, rows_by_libdw(path));
  EXPECT_GT(size->header_bytes, 20U);
}

INSTANTIATE_TEST_SUITE_P(Versions, LineTable,
                         ::testing::Values("-gdwarf-2 -O0", "-gdwarf-3 -O1", "-gdwarf-4 -O2", "-gdwarf-5 -O2",
                                           "-gdwarf-5 -O0 -gno-as-loc-support"));

TEST(LineTableSize, IsUnknownOfWhatIsNoTable) {
  EXPECT_FALSE(line_table_size("", 0));
  EXPECT_FALSE(line_table_size("abc", 7));
  EXPECT_FALSE(line_table_size(std::string_view("\x04\0\0\0\x09\0\0\0", 8), 0));         // of another version
  EXPECT_FALSE(line_table_size(std::string_view("\xff\0\0\0\x04\0\0\0", 8), 0));         // longer than the section
  EXPECT_FALSE(line_table_size(std::string_view("\x06\0\0\0\x04\0\xff\0\0\0", 10), 0));  // with a longer header
}

}  // namespace
}  // namespace espy::symbols::dwarf
