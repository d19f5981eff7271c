#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "symbols/dwarf/scopes.h"
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

// Returns a table of version 4 with a program, and opcodes from 10 on as special ones.
std::string table_of(std::string_view program) {
  const std::string header("\x01\x01\x01\xfb\x0e\x0a\0\x01\x01\x01\x01\0\0\0\x01\0\0", 17);
  std::string out("\0\0\0\0\x04\0\0\0\0\0", 10);
  out += header + std::string(program);
  out[0] = static_cast<char>(out.size() - 4);
  out[6] = static_cast<char>(header.size());
  return out;
}

TEST(LineTableSize, CountsWhatAppendsARow) {
  const auto rows_of = [](std::string_view program) -> int64_t {
    const auto size = line_table_size(table_of(program), 0);
    return size ? static_cast<int64_t>(size->rows) : -1;
  };
  EXPECT_EQ(rows_of(""), 0);
  EXPECT_EQ(rows_of("\x0a\xff\x01"), 3);                                 // two special, DW_LNS_copy
  EXPECT_EQ(rows_of("\x02\x8a\x01\x03\x0a\x06"), 0);                     // operands that look like opcodes
  EXPECT_EQ(rows_of(std::string_view("\x09\x0a\x0a\x0a", 4)), 1);        // DW_LNS_fixed_advance_pc has two bytes
  EXPECT_EQ(rows_of(std::string_view("\0\x01\x01\x0a", 4)), 2);          // DW_LNE_end_sequence
  EXPECT_EQ(rows_of(std::string_view("\0\x03\x77\x0a\x0a\x0a", 6)), 1);  // an unknown extended opcode
  // libdw would take the rest for opcodes.
  EXPECT_EQ(rows_of(std::string_view("\0\x03\x01\x0a\x0a", 5)), -1);
  EXPECT_EQ(rows_of(std::string_view("\0\x04\x02\x0a\x0a\x0a", 6)), -1);
  EXPECT_EQ(rows_of(std::string_view("\0\x04\x04\x01\x0a\x0a", 6)), -1);
  EXPECT_EQ(rows_of(std::string_view("\0\x81\x01", 3)), -1);
  EXPECT_EQ(rows_of(std::string_view("\0\0", 2)), -1);
}

TEST(LineTableSize, IsUnknownOfWhatIsNoTable) {
  EXPECT_FALSE(line_table_size("", 0));
  EXPECT_FALSE(line_table_size("abc", 7));
  EXPECT_FALSE(line_table_size(std::string_view("\x04\0\0\0\x09\0\0\0", 8), 0));         // of another version
  EXPECT_FALSE(line_table_size(std::string_view("\xff\0\0\0\x04\0\0\0", 8), 0));         // longer than the section
  EXPECT_FALSE(line_table_size(std::string_view("\x06\0\0\0\x04\0\xff\0\0\0", 10), 0));  // with a longer header
}

}  // namespace
}  // namespace espy::symbols::dwarf
