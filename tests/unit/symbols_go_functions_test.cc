// The function table of Go: each layout of its header, tables that are cut or corrupt, and what the compiler here
// makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <sstream>

#include "symbols/elf_file.h"
#include "symbols/go_functions.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::has_tool;
using testing::run;
using testing::TempDir;

constexpr uint32_t kMagics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
constexpr uint64_t kText = 0x401000;

// A table of main.one at the start of the text, 16 bytes, lines 10 and, from byte 4, 12; and main.two, 32 bytes, where
// stacks end. Their stacks have 24 bytes from byte 4 to byte 12.
class TableWriter {
 public:
  explicit TableWriter(uint32_t magic) : magic_(magic) {}

  std::string write() {
    const bool is_first = magic_ == kMagics[0];
    const bool is_relative = magic_ == kMagics[2] || magic_ == kMagics[3];
    entry_bytes_ = is_relative ? 4 : 8;
    origin_ = is_relative ? 0 : kText;
    const std::string names("\0main.one\0main.two\0", 19);
    const std::string file("\0/src/main.go\0", 14);
    // At 1: the file, at 4: the lines, at 9: the depth of the stack.
    const std::string values("\0\x04\x30\0\x16\x04\x04\x0c\0\x02\x04\x30\x08\x2f\x04\0", 16);
    if (is_first) {
      // All offsets are from the start of the table: the parts follow the list and its records.
      const uint64_t records = 16 + 5 * 8 + 4;
      const uint64_t after = records + 2 * kRecordBytes;
      header(2);
      list(records);
      number(after + names.size() + values.size(), 4);  // where the list of files is
      for (uint64_t i = 0; i < 2; ++i) record(i, after + 1 + i * 9, after + names.size());
      out_ += names + values;
      number(2, 4);
      number(out_.size() + 4 + 1, 4);  // file 1
      out_ += file;
      return out_;
    }
    const uint64_t parts = 8 + (is_relative ? 8 : 7) * 8;
    header(2);
    number(1, 8);
    if (is_relative) number(kText, 8);
    const std::string unit(8, '\0');
    uint64_t at = parts;
    for (const uint64_t size : {names.size(), size_t{8}, file.size(), values.size()}) {
      number(at, 8);
      at += size;
    }
    number(at, 8);
    out_ += names;
    number(0, 4);
    number(1, 4);  // file 1 of the unit
    out_ += file + values;
    const uint64_t records = uint64_t{5} * entry_bytes_;
    list(records);
    for (uint64_t i = 0; i < 2; ++i) record(i, 1 + i * 9, 0);
    return out_;
  }

 private:
  static constexpr uint64_t kRecordBytes = 48;

  void number(uint64_t value, size_t size) { out_.append(reinterpret_cast<const char*>(&value), size); }
  void header(uint64_t count) {
    number(magic_, 4);
    out_ += std::string("\0\0\1\x08", 4);
    number(count, 8);
  }
  void list(uint64_t records) {
    for (uint64_t i = 0; i < 2; ++i) {
      number(origin_ + i * 16, entry_bytes_);
      number(records + i * kRecordBytes, entry_bytes_);
    }
    number(origin_ + 48, entry_bytes_);
  }
  void record(uint64_t index, uint64_t name, uint64_t values) {
    const size_t begin = out_.size();
    number(origin_ + index * 16, entry_bytes_);
    number(name, 4);
    out_.append(8, '\0');
    number(values + 9, 4);
    number(values + 1, 4);
    number(values + 4, 4);
    out_.resize(begin + kRecordBytes);
    const size_t flags_at = begin + entry_bytes_ + (magic_ == kMagics[3] ? 37 : 33);
    if (entry_bytes_ == 4 && index == 1) out_[flags_at] = 3;
  }

  uint32_t magic_;
  size_t entry_bytes_ = 8;
  uint64_t origin_ = 0;
  std::string out_;
};

class GoTable : public ::testing::TestWithParam<uint32_t> {};

TEST_P(GoTable, HasFunctionsAndLines) {
  const std::string bytes = TableWriter(GetParam()).write();
  const auto table = GoFunctionTable::parse(bytes, kText);
  ASSERT_TRUE(table);
  ASSERT_EQ(table->functions().size(), 2U);
  EXPECT_EQ(table->functions()[0].name, "main.one");
  EXPECT_EQ(table->functions()[0].address, kText);
  EXPECT_EQ(table->functions()[0].size, 16U);
  EXPECT_EQ(table->functions()[1].name, "main.two");
  EXPECT_EQ(table->functions()[1].address, kText + 16);
  EXPECT_EQ(table->functions()[1].size, 32U);
  for (const auto& [offset, line] : {std::pair{0U, 10U}, {3U, 10U}, {4U, 12U}, {15U, 12U}}) {
    const auto found = table->line_at(kText + offset);
    ASSERT_TRUE(found) << offset;
    EXPECT_EQ(found->line, line);
    EXPECT_EQ(found->file, "/src/main.go");
  }
  EXPECT_FALSE(table->line_at(kText - 1));
  EXPECT_FALSE(table->line_at(kText + 48));
}

TEST_P(GoTable, HasTheDepthOfStacks) {
  const std::string bytes = TableWriter(GetParam()).write();
  const auto table = GoFunctionTable::parse(bytes, kText);
  ASSERT_TRUE(table);
  const std::vector<GoStackDepth> wanted = {{kText, 0}, {kText + 4, 24}, {kText + 12, 0}};
  EXPECT_EQ(table->stack_depths(table->functions()[0]), wanted);
  const bool has_flags = GetParam() == kMagics[2] || GetParam() == kMagics[3];
  EXPECT_EQ(table->has_flags(), has_flags);
  EXPECT_FALSE(table->functions()[0].is_outermost || table->functions()[0].is_stack_written);
  EXPECT_EQ(table->functions()[1].is_outermost, has_flags);
  EXPECT_EQ(table->functions()[1].is_stack_written, has_flags);
}

TEST_P(GoTable, HasNumbersOf32Bits) {
  std::string bytes = TableWriter(GetParam()).write();
  const size_t lines = bytes.find("\x16\x04\x04\x0c");
  ASSERT_NE(lines, std::string::npos);
  bytes.replace(lines, 5, std::string("\x96\x80\x80\x80\0", 5));
  EXPECT_EQ(GoFunctionTable::parse(bytes, kText)->line_at(kText)->line, 10u);
  bytes.replace(lines, 6, std::string("\x96\x80\x80\x80\x80\0", 6));
  EXPECT_FALSE(GoFunctionTable::parse(bytes, kText)->line_at(kText)) << "it could go on for the rest of the table";
}

// Looks at all that a table has; sanitizers watch.
void read_all(std::string bytes) {
  bytes.shrink_to_fit();
  const auto table = GoFunctionTable::parse(bytes, kText);
  if (!table) return;
  for (const GoFunction& function : table->functions()) {
    EXPECT_LT(function.name.size(), 4096U);
    EXPECT_LE(table->stack_depths(function).size(), function.size);
    for (const uint64_t at : {function.address, function.address + function.size - 1}) (void)table->line_at(at);
  }
}

TEST_P(GoTable, MayBeCutAnywhere) {
  const std::string bytes = TableWriter(GetParam()).write();
  for (size_t size = 0; size < bytes.size(); ++size) read_all(bytes.substr(0, size));
}

TEST_P(GoTable, MayHaveAnyNumbers) {
  const std::string bytes = TableWriter(GetParam()).write();
  for (size_t at = 4; at < bytes.size(); ++at) {
    for (const size_t size : {1, 4, 8}) {
      for (const uint64_t value : {uint64_t{0}, ~uint64_t{0}, uint64_t{0x7fffffff}, uint64_t{0x80}}) {
        std::string corrupt = bytes;
        std::memcpy(corrupt.data() + at, &value, std::min(size, corrupt.size() - at));
        read_all(std::move(corrupt));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, GoTable, ::testing::ValuesIn(kMagics));

TEST(GoFunctions, OtherBytesAreNoTable) {
  EXPECT_FALSE(GoFunctionTable::parse("", kText));
  EXPECT_FALSE(GoFunctionTable::parse(std::string(64, '\0'), kText));
  std::string bytes = TableWriter(kMagics[2]).write();
  bytes[7] = 3;  // the size of pointers
  EXPECT_FALSE(GoFunctionTable::parse(bytes, kText));
}

// A stripped binary has the functions that its symbol table had.
class StrippedGo : public ::testing::TestWithParam<const char*> {};

TEST_P(StrippedGo, HasTheFunctionsOfItsSymbolTable) {
  if (!has_tool("go")) GTEST_SKIP() << "no Go compiler";
  const TempDir dir;
  dir.write(
      "main.go",
      "package main\n\n//go:noinline\nfunc twice(n int) int { return 2 * n }\n\nfunc main() { println(twice(4)) }\n");
  const std::string go = "cd " + dir.path("") + " && GO111MODULE=off GOFLAGS= go build " + GetParam();
  ASSERT_TRUE(run(go + " -o full main.go"));
  ASSERT_TRUE(run(go + " -ldflags '-s -w' -o stripped main.go"));
  const auto full = ElfFile::open(dir.path("full")), stripped = ElfFile::open(dir.path("stripped"));
  ASSERT_TRUE(full && stripped);
  const auto twice = stripped->find_function("main.twice");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->file_offset, full->find_function("main.twice")->file_offset);
  EXPECT_GT(stripped->functions("runtime.*").size(), 500U);
  const auto covering = stripped->function_at(twice->address + 1);
  ASSERT_TRUE(covering);
  EXPECT_EQ(covering->name, "main.twice");
}

INSTANTIATE_TEST_SUITE_P(Modes, StrippedGo, ::testing::Values("", "-buildmode=pie"));

}  // namespace
}  // namespace espy::symbols
