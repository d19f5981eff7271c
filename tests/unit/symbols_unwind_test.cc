// Rows of .eh_frame against what readelf makes of the same libraries.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "symbols/elf_file.h"
#include "symbols/symbols.h"
#include "symbols/unwind.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::has_tool;
using testing::output_of;

struct Expected {
  uint64_t address = 0;
  std::string cfa, rbp, return_address;  // "rsp+16", "c-16", "u", "exp"
};

// The rows that readelf prints of each function, by the columns of its table.
std::vector<Expected> rows_of_readelf(const std::string& path) {
  std::istringstream text(output_of("readelf --debug-dump=frames-interp " + path));
  std::vector<Expected> out;
  std::vector<std::string> columns;
  bool is_function = false;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    if (line.find(" FDE ") != line.npos || line.find(" CIE ") != line.npos)
      is_function = line.find(" FDE ") != line.npos;
    if (found.empty() || !is_function) continue;
    if (found[0] == "LOC") {
      columns = found;
    } else if (found.size() == columns.size() && found[0].size() == 16) {
      Expected row{std::stoull(found[0], nullptr, 16), found[1], "u", "u"};
      for (size_t i = 2; i < columns.size(); ++i) {
        if (columns[i] == "rbp") row.rbp = found[i];
        if (columns[i] == "ra") row.return_address = found[i];
      }
      out.push_back(row);
    }
  }
  return out;
}

std::string base_text(FrameRule rule) {
  const std::string offset = "+" + std::to_string(rule.offset_bytes());
  if (rule.base() == FrameBase::kStackPointer) return "rsp" + offset;
  if (rule.base() == FrameBase::kFramePointer) return "rbp" + offset;
  return "exp";
}

std::string rbp_text(FrameRule rule) {
  if (rule.frame_pointer() == FrameRule::kSame) return "u";
  if (rule.frame_pointer() == FrameRule::kAtFramePointer) return "exp";
  return "c-" + std::to_string(rule.frame_pointer() * 8);
}

// How a row that we have differs from readelf's; "" where they agree.
std::string difference(const Expected& wanted, FrameRule rule) {
  if (rule.base() == FrameBase::kUnknown) {
    // Only what a row cannot hold may be missing.
    const bool is_plain =
        (wanted.cfa.starts_with("rsp+") || wanted.cfa.starts_with("rbp+")) && wanted.return_address == "c-8";
    return is_plain ? "no rule" : "";
  }
  if (rule.base() == FrameBase::kEnd) return wanted.return_address == "u" ? "" : "an end";
  if (rule.base() == FrameBase::kSignalFrame) return wanted.cfa == "exp" ? "" : "a signal handler";
  const std::string cfa = base_text(rule);
  if (cfa != wanted.cfa) return "cfa " + cfa;
  if (rule.frame_pointer() == FrameRule::kUnrecoverable) return wanted.rbp.starts_with("c-") ? "rbp lost" : "";
  const std::string rbp = rbp_text(rule);
  return rbp == wanted.rbp || (rbp == "u" && wanted.rbp == "s") ? "" : "rbp " + rbp;
}

void compare_with_readelf(const std::string& library) {
  if (!has_tool("readelf")) GTEST_SKIP() << "no readelf";
  const auto path = resolve_library(library);
  if (!path) GTEST_SKIP() << "no " << library;
  const auto file = ElfFile::open(*path);
  const auto rows = read_unwind_rows(*path);
  ASSERT_TRUE(file && rows);
  const std::vector<Expected> wanted = rows_of_readelf(*path);
  ASSERT_GT(wanted.size(), 1000U);
  size_t unknown = 0;
  for (const Expected& each : wanted) {
    const auto offset = file->offset_of_address(each.address);
    const UnwindRow* row = offset ? find_row(*rows, static_cast<uint32_t>(*offset)) : nullptr;
    ASSERT_NE(row, nullptr) << std::hex << each.address;
    unknown += row->rule.base() == FrameBase::kUnknown ? 1 : 0;
    ASSERT_EQ(difference(each, row->rule), "")
        << std::hex << each.address << ": " << each.cfa << " rbp " << each.rbp << " ra " << each.return_address;
  }
  EXPECT_LT(unknown, wanted.size() / 50);
}

TEST(Unwind, RowsOfTheCLibraryAreReadelfs) { compare_with_readelf("libc.so.6"); }
TEST(Unwind, RowsOfTheCppLibraryAreReadelfs) { compare_with_readelf("libstdc++.so.6"); }
TEST(Unwind, RowsOfHandWrittenCodeAreReadelfs) { compare_with_readelf("libcrypto.so.3"); }

TEST(Unwind, TheSignalTrampolineAndTheLinkageTableAreKnown) {
  const auto path = resolve_library("libc.so.6");
  if (!path) GTEST_SKIP() << "no C library";
  const auto rows = read_unwind_rows(*path);
  ASSERT_TRUE(rows);
  const auto count = [&](FrameBase base) {
    return std::ranges::count_if(*rows, [&](const UnwindRow& row) { return row.rule.base() == base; });
  };
  EXPECT_EQ(count(FrameBase::kSignalFrame), 1);
  EXPECT_GE(count(FrameBase::kPlt), 1);
  EXPECT_GE(count(FrameBase::kEnd), 1);
}

TEST(Unwind, RowsAreSortedAndNoTwoNeighboursAgree) {
  const auto rows = read_unwind_rows("/proc/self/exe");
  ASSERT_TRUE(rows);
  ASSERT_GT(rows->size(), 100U);
  for (size_t i = 1; i < rows->size(); ++i) {
    ASSERT_LT((*rows)[i - 1].file_offset, (*rows)[i].file_offset);
    ASSERT_NE((*rows)[i - 1].rule, (*rows)[i].rule);
  }
}

TEST(Unwind, AFileWithoutTheSectionHasNoRows) {
  const testing::TempDir dir;
  const auto rows =
      read_unwind_rows(dir.build("plain", "int main(void) { return 0; }", "-fno-asynchronous-unwind-tables -c"));
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->empty());
}

TEST(Unwind, WhatIsNoProgramIsAnError) {
  EXPECT_FALSE(read_unwind_rows("/etc/passwd"));
  EXPECT_FALSE(read_unwind_rows("/nonexistent"));
}

// Whatever a broken file says, nothing is read beyond it.
TEST(Unwind, BrokenSectionsEndTheReading) {
  std::string image = output_of("cat " + resolve_library("libm.so.6").value_or("/proc/self/exe"));
  for (size_t at = 0x200; at < image.size(); at += 37) image[at] = static_cast<char>(image[at] * 7 + 3);
  (void)read_unwind_rows(image, "broken");
}

// Fails in a build with sanitizers if a product or a negation overflows.
TEST(Unwind, NumbersAreOfAnySize) {
  const testing::TempDir dir;
  const auto rows = read_unwind_rows(dir.build("numbers", R"(asm(R"X(
  .globl work
  .type work, @function
work:
  .cfi_startproc
  nop
  .cfi_escape 0x12, 7, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f  # the CFA at -2^63 times -8
  nop
  .cfi_escape 0x13, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f
  nop
  .cfi_escape 0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01     # at 2^63
  nop
  .cfi_escape 0x0e, 16
  .cfi_escape 0x05, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10        # FP at the CFA - 2^63
  nop
  .cfi_escape 0x2f, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01  # and at the negation of that
  nop
  .cfi_endproc
  .size work, . - work
)X"); int main(void) { return 0; })",
                                               "-fno-asynchronous-unwind-tables"));
  ASSERT_TRUE(rows);
  EXPECT_TRUE(std::ranges::any_of(
      *rows, [](const UnwindRow& row) { return row.rule.frame_pointer() == FrameRule::kUnrecoverable; }));
}

// Returns the offsets below the stack pointer that the rows of a function have: 16, and 32 behind as many remembered
// states.
std::vector<int> offsets_behind(int remembered) {
  const testing::TempDir dir;
  const auto rows = read_unwind_rows(dir.build("nested", R"(asm(R"X(
  .globl work
  .type work, @function
work:
  .cfi_startproc
  .cfi_escape 0x0e, 16
  nop
  .rept )" + std::to_string(remembered) + R"(
  .cfi_escape 0x0a
  .endr
  .cfi_escape 0x0e, 32
  nop
  .cfi_endproc
  .size work, . - work
)X"); int main(void) { return 0; })",
                                               "-fno-asynchronous-unwind-tables"));
  std::vector<int> out;
  for (const UnwindRow& row : rows.value_or(std::vector<UnwindRow>()))
    if (row.rule.offset_bytes() == 16 || row.rule.offset_bytes() == 32) out.push_back(row.rule.offset_bytes());
  return out;
}

// Each is a byte in the file, and a hundred in memory.
TEST(Unwind, FewStatesAreRemembered) {
  EXPECT_EQ(std::ranges::count(offsets_behind(64), 32), std::ranges::count(offsets_behind(65), 32) + 1);
  EXPECT_EQ(std::ranges::count(offsets_behind(65), 16), std::ranges::count(offsets_behind(64), 16));
}

TEST(Unwind, RulesKeepTheirParts) {
  const FrameRule rule = FrameRule::make(FrameBase::kLoadFromFramePointer, -8, FrameRule::kAtFramePointer);
  EXPECT_EQ(rule.base(), FrameBase::kLoadFromFramePointer);
  EXPECT_EQ(rule.offset_bytes(), -8);
  EXPECT_EQ(rule.frame_pointer(), FrameRule::kAtFramePointer);
  EXPECT_EQ(FrameRule::make(FrameBase::kStackPointer, FrameRule::kMaxOffsetBytes, 3).offset_bytes(),
            FrameRule::kMaxOffsetBytes);
}

}  // namespace
}  // namespace espy::symbols
