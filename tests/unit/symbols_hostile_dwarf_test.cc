// Debug information that no compiler writes: in circles, or with references to files that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "symbols/debug_info.h"
#include "symbols/dwarf/dwarf_file.h"
#include "symbols/dwarf/passing.h"
#include "symbols/dwarf/scopes.h"
#include "symbols/dwarf/split_file.h"
#include "symbols/elf_file.h"
#include "symbols_debug_info_support.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::has_tool;
using testing::run;

// A program with a function `work` of `code_bytes`, these abbreviations, the DIEs of its only unit, and what else is
// there.
std::string program_of(std::string_view abbreviations, std::string_view dies, std::string_view more = "",
                       int code_bytes = 64) {
  return R"(asm(R"X(
  .globl work
  .type work, @function
work: ret
  .skip )" +
         std::to_string(code_bytes - 1) + "\n  .size work, " + std::to_string(code_bytes) + R"(
  .pushsection .debug_abbrev, "", @progbits
)" + std::string(abbreviations) +
         R"(
  .uleb128 0
  .popsection
  .pushsection .debug_info, "", @progbits
unit: .long end - begin
begin: .short 4; .long 0; .byte 8
)" + std::string(dies) +
         R"(
  .uleb128 0
end:
  .popsection
)" + std::string(more) +
         R"()X");
int main(void) { return 0; }
)";
}

// A program with a function `work` and these DIEs in its only unit. Abbreviations: 2 a function with children, 3 a
// parameter, 4 a const type, 5 a namespace with a sibling, 6 a function without children and with a sibling, 7 a block.
std::string program_with(std::string_view dies) {
  return program_of(R"(abbrev:
  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 3, 0x5;  .byte 0; .uleb128 0x3, 0x8, 0x49, 0x13, 0, 0
  .uleb128 4, 0x26; .byte 0; .uleb128 0x49, 0x13, 0, 0
  .uleb128 5, 0x39; .byte 1; .uleb128 0x1, 0x13, 0, 0
  .uleb128 6, 0x2e; .byte 0; .uleb128 0x3, 0x8, 0x1, 0x13, 0, 0
  .uleb128 7, 0xb;  .byte 1; .uleb128 0x1, 0x13, 0x11, 0x1, 0x12, 0x7, 0, 0)",
                    R"(  .uleb128 1; .string "program.c"; .quad work, 64
)" + std::string(dies));
}

using dwarf::Scopes;

class HostileDwarf : public DebugInfoTest {
 protected:
  void open(std::string_view dies) { DebugInfoTest::open(program_with(dies), "-no-pie -fno-pie"); }
};

constexpr std::string_view kWork = R"(.uleb128 2; .string "work"; .quad work, 64)";

TEST_F(HostileDwarf, ATypeMayBeMadeOfItself) {
  open(std::string(kWork) + R"(
    .uleb128 3; .string "x"; .long circle - unit
    .uleb128 0
    circle: .uleb128 4; .long circle - unit)");
  const auto arguments = debug_->arguments(types_, work_, "");
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_THAT(arguments[0].c_type, ::testing::StartsWith("const const"));
}

TEST_F(HostileDwarf, ADieMayBeItsOwnSibling) {
  open(std::string(kWork) + R"(
    .uleb128 0
    circle: .uleb128 6; .string "again"; .long circle - unit)");
  EXPECT_TRUE(debug_->knows(work_));
  EXPECT_TRUE(debug_->inlined_copies("again").empty());
}

// The sibling of each namespace is its first child: the tree has 2^40 paths.
TEST_F(HostileDwarf, ChildrenMayBeSiblings) {
  open(std::string(kWork) + R"(
    .uleb128 0
    .set n, 0
    .rept 40
    .uleb128 5; .long . - unit + 4
    .endr
    .skip 40)");
  EXPECT_TRUE(debug_->knows(work_));
  types::Types types;
  EXPECT_FALSE(debug_->find_type(types, DebugInfo::TypeCategory::kStruct, "none", work_).type);
  EXPECT_TRUE(debug_->inlined_copies("again").empty());
}

TEST_F(HostileDwarf, BlocksMayBeSiblingsOfTheirChildren) {
  open(std::string(kWork) + R"(
    .rept 40
    .uleb128 7; .long . - unit + 20; .quad work, 64
    .endr
    .skip 42)");
  EXPECT_TRUE(debug_->knows(work_));
  EXPECT_TRUE(debug_->inlined_copies("again").empty());
  EXPECT_EQ(debug_->arguments(types_, work_, "").size(), 0u);
}

// A unit with these functions (abbreviation 2: a name and a list of ranges), ranges, and rows in its line table.
// `rows`: assembly of the line program.
std::string program_with_ranges_and_rows(std::string_view functions, std::string_view ranges, std::string_view rows) {
  return program_of(R"(  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x10, 0x17, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 0; .uleb128 0x3, 0x8, 0x55, 0x17, 0, 0)",
                    R"(  .uleb128 1; .string "program.c"; .long 0; .quad work, 100000
)" + std::string(functions),
                    R"(  .pushsection .debug_ranges, "", @progbits
)" + std::string(ranges) +
                        R"(
  .popsection
  .pushsection .debug_line, "", @progbits
  .long lines_end - lines
lines: .short 4; .long program - files
files: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
  .string "x.c"; .byte 0, 0, 0, 0
program: .byte 0, 9, 2; .quad work
)" + std::string(rows) + R"(
  .byte 0, 1, 1
lines_end:
  .popsection
)",
                    100'000);
}

// The same with a function `work` that has 20,000 ranges.
std::string program_with_ranges_and_rows(std::string_view rows) {
  return program_with_ranges_and_rows(R"(  .uleb128 2; .string "work"; .long 0)", R"(  .set n, 0
  .rept 20000
  .quad 4 * n, 4 * n + 3
  .set n, n + 1
  .endr
  .quad 0, 0)",
                                      rows);
}

// A program with a function `work` and these DIEs behind its own, in a unit of 64 bytes. They can have the lists of
// ranges `of_work`, of the first 32 bytes, `of_late` and `of_end`, of the other ones.
std::string program_with_range_lists(std::string_view dies) {
  return program_of(R"(  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x55, 0x17, 0, 0
  .uleb128 2, 0x2e; .byte 0; .uleb128 0x3, 0x8, 0x55, 0x17, 0, 0)",
                    R"(  .uleb128 1; .string "program.c"; .quad work; .long of_unit - ranges
  .uleb128 2; .string "work"; .long of_work - ranges
)" + std::string(dies),
                    R"(  .pushsection .debug_ranges, "", @progbits
ranges:
of_unit: .fill 20000, 8, 1
  .quad 0, 64, 0, 0
of_work: .fill 1000, 8, 1
  .quad 0, 32, 0, 0
of_late: .fill 20000, 8, 1
of_end: .quad 32, 64, 0, 0
  .popsection
)");
}

// A unit has the ranges of all its functions that were discarded, a function none or all.
TEST_F(HostileDwarf, DiscardedRangesMayBeMany) {
  DebugInfoTest::open(program_with_range_lists(R"(.uleb128 2; .string "end"; .long of_end - ranges)"),
                      "-no-pie -fno-pie");
  EXPECT_TRUE(debug_->knows(work_));
  EXPECT_TRUE(debug_->knows(work_ + 32));
  DebugInfoTest::open(program_with_range_lists(R"(.uleb128 2; .string "late"; .long of_late - ranges)"),
                      "-no-pie -fno-pie");
  EXPECT_TRUE(debug_->knows(work_));
  EXPECT_FALSE(debug_->knows(work_ + 32));
}

// All lists together have ten million entries, in a file of 500 KB.
TEST_F(HostileDwarf, FunctionsMayShareAListOfRanges) {
  DebugInfoTest::open(program_with_range_lists(R"(
    .rept 10000
    .uleb128 2; .string "work"; .long of_work - ranges
    .endr
    .uleb128 2; .string "end"; .long of_end - ranges)"),
                      "-no-pie -fno-pie");
  EXPECT_TRUE(debug_->knows(work_));
  EXPECT_FALSE(debug_->knows(work_ + 32));
}

// The blocks of a function are read when an address in them is first asked for: in the second half 20,000 with a list
// of ranges that has 200,000 base addresses.
TEST_F(HostileDwarf, ABlockOfAKnownFunctionMayTakeLong) {
  const std::string program = program_of(R"(  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 3, 0xb; .byte 1; .uleb128 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 4, 0xb; .byte 0; .uleb128 0x55, 0x17, 0, 0)",
                                         R"(  .uleb128 1; .string "program.c"; .quad work, 64
  .uleb128 2; .string "work"; .quad work, 64
  .uleb128 3; .quad work + 32, 32
  .rept 20000
  .uleb128 4; .long 0
  .endr
  .uleb128 0, 0)",
                                         R"(  .pushsection .debug_ranges, "", @progbits
  .rept 200000
  .quad -1, 0
  .endr
  .quad 0, 0
  .popsection
)");
  DebugInfoTest::open(program, "-no-pie -fno-pie");
  EXPECT_EQ(debug_->frames_at(work_).size(), 1u);
  EXPECT_TRUE(debug_->status());
  const TimeLimit limit(std::chrono::milliseconds(100));
  EXPECT_TRUE(debug_->frames_at(work_ + 32).empty());
  EXPECT_FALSE(debug_->status());
}

double cpu_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

constexpr double kManySeconds = 5;  // what follows takes 0.1, and much longer where a look-up is linear

TEST_F(HostileDwarf, RowsAndRangesMayBeMany) {
  DebugInfoTest::open(program_with_ranges_and_rows(".fill 80000, 1, 0x21"), "-no-pie -fno-pie");
  const double began = cpu_seconds();
  EXPECT_GT(debug_->statements_of(work_).size(), 59000U);  // three of four addresses
  EXPECT_GT(debug_->statements("x.c", 0, 0).size(), 59000U);
  EXPECT_LT(cpu_seconds() - began, kManySeconds);
}

TEST_F(HostileDwarf, AllRowsMayBeOfTheEntry) {
  DebugInfoTest::open(program_with_ranges_and_rows(".fill 80000, 1, 0x14"), "-no-pie -fno-pie");
  const double began = cpu_seconds();
  EXPECT_GT(debug_->statements_of(work_).size(), 79000U);
  EXPECT_LT(cpu_seconds() - began, kManySeconds);
}

// Two functions with 20,000 ranges each, and as many rows, of which each belongs to the other function than the last.
TEST_F(HostileDwarf, RowsMayAlternateBetweenFunctions) {
  const std::string program = program_with_ranges_and_rows(R"(  .uleb128 2; .string "work"; .long of_work - of_work
  .uleb128 2; .string "other"; .long of_other - of_work)",
                                                           R"(of_work: .set n, 0
  .rept 20000
  .quad 2 * n, 2 * n + 1
  .set n, n + 1
  .endr
  .quad 0, 0
of_other: .set n, 0
  .rept 20000
  .quad 2 * n + 1, 2 * n + 2
  .set n, n + 1
  .endr
  .quad 0, 0)",
                                                           ".fill 39999, 1, 0x20");
  DebugInfoTest::open(program, "-no-pie -fno-pie");
  const double began = cpu_seconds();
  EXPECT_GT(debug_->statements("x.c", 1, 0).size(), 39000U);
  EXPECT_LT(cpu_seconds() - began, kManySeconds);
}

// The lines of 20,000 units are behind those of each other, and all go on to the end of the section.
TEST_F(HostileDwarf, LineTablesMayOverlap) {
  const std::string program = program_of(R"(  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 0; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 3, 0x11; .byte 0; .uleb128 0x10, 0x17, 0, 0)",
                                         kWork, R"(  .pushsection .debug_info, "", @progbits
  .set n, 0
  .rept 20000
  .long 12; .short 4; .long 0; .byte 8, 3; .long 33 * n + 3
  .set n, n + 1
  .endr
  .popsection
  .pushsection .debug_line, "", @progbits
  .rept 20000
  .byte 0, 31, 0x80
  .long lines_end - . - 4
  .short 4; .long 20; .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0
  .endr
  .fill 2000000, 1, 0x40
  .byte 0, 0xff, 0x80
lines_end:
  .popsection
)");
  DebugInfoTest::open(program, "-no-pie -fno-pie");
  const double began = cpu_seconds();
  EXPECT_TRUE(debug_->files().empty());
  EXPECT_LT(cpu_seconds() - began, kManySeconds);
  EXPECT_FALSE(debug_->status());
}

// A variable whose place asks for the frame 8,000 times, while the call frame information has a million instructions.
TEST_F(HostileDwarf, APlaceMayAskForTheFrameAgainAndAgain) {
  const std::string program =
      program_of(R"(  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0x13, 0xb, 0, 0
  .uleb128 2, 0x2e; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 3, 0x5;  .byte 0; .uleb128 0x3, 0x8, 0x49, 0x13, 0x2, 0x18, 0, 0
  .uleb128 4, 0x24; .byte 0; .uleb128 0x3, 0x8, 0xb, 0xb, 0x3e, 0xb, 0, 0)",
                 R"(  .uleb128 1; .string "program.c"; .quad work, 64; .byte 0xc
  type: .uleb128 4; .string "char"; .byte 1, 6
  .uleb128 2; .string "work"; .quad work, 64
  .uleb128 3; .string "x"; .long type - unit; .uleb128 place_end - place
place: .fill 4000, 2, 0x139c
  .byte 0x9c
place_end:
  .uleb128 0)",
                 R"(  .pushsection .debug_frame, "", @progbits
  .long cie_end - cie
cie: .long 0xffffffff; .byte 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1; .balign 8
cie_end: .long fde_end - fde
fde: .long 0; .quad work, 64; .fill 1000000, 2, 0x100e
fde_end:
  .popsection
)");
  DebugInfoTest::open(program, "-no-pie -fno-pie");
  const double began = cpu_seconds();
  const auto arguments = debug_->arguments(types_, work_, "");
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_TRUE(arguments[0].place);
  EXPECT_LT(cpu_seconds() - began, kManySeconds);
}

// A variable whose place asks for six registers in each of 60 frames of a caller's caller, while the call frame
// information has 100,000 instructions. Only that place is not found.
TEST_F(HostileDwarf, APlaceMayTakeTooLong) {
  const std::string program = program_of(R"(  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0x7a, 0x19, 0, 0
  .uleb128 3, 0x5;  .byte 0; .uleb128 0x3, 0x8, 0x49, 0x13, 0x2, 0x18, 0, 0
  .uleb128 4, 0x24; .byte 0; .uleb128 0x3, 0x8, 0xb, 0xb, 0x3e, 0xb, 0, 0
  .uleb128 5, 0x48; .byte 1; .uleb128 0x7d, 0x1, 0x7f, 0x13, 0, 0
  .uleb128 6, 0x49; .byte 0; .uleb128 0x2, 0x18, 0x7e, 0x18, 0, 0)",
                                         R"(  .uleb128 1; .string "program.c"; .quad work, 192
  type: .uleb128 4; .string "char"; .byte 1, 6
  work_die: .uleb128 2; .string "work"; .quad work, 64
  .uleb128 3; .string "x"; .long type - unit; .byte 4, 0xa3, 1, 0x55, 0x9f
  .uleb128 3; .string "y"; .long type - unit; .byte 1, 0x53
  .uleb128 0
  caller_die: .uleb128 2; .string "caller"; .quad work + 64, 64
  .set n, 0
  .rept 60
  .uleb128 5; .quad work + 66 + n; .long work_die - unit
  .uleb128 6; .byte 1, 0x55, 3, 0xa3, 1, 0x55
  .uleb128 0
  .set n, n + 1
  .endr
  .uleb128 0
  .uleb128 2; .string "outer"; .quad work + 128, 64
  .uleb128 5; .quad work + 130; .long caller_die - unit
  .uleb128 6; .byte 1, 0x55, 17, 0x73, 0, 0x76, 0, 0x22, 0x7c, 0, 0x22, 0x7d, 0, 0x22, 0x7e, 0, 0x22, 0x7f, 0, 0x22
  .uleb128 0
  .uleb128 0)",
                                         R"(  .pushsection .debug_frame, "", @progbits
  .long cie_end - cie
cie: .long 0xffffffff; .byte 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0x83, 2, 0x86, 3, 0x8c, 4, 0x8d, 5, 0x8e, 6, 0x8f, 7
  .balign 8
cie_end: .long fde_end - fde
fde: .long 0; .quad work, 192; .fill 100000, 2, 0x100e
fde_end:
  .popsection
)",
                                         192);
  DebugInfoTest::open(program, "-no-pie -fno-pie");
  const auto image = ElfImage::open(directory_.path("program"));
  const auto file = dwarf::File::open(*image, {});
  ASSERT_TRUE(file);
  const auto site = dwarf::site_at(**file, work_ + 1);
  ASSERT_TRUE(site);
  const auto variables = dwarf::variables_of(site->function);
  ASSERT_EQ(variables.size(), 2u);
  const auto locate = [&](int variable) {
    return dwarf::locate(**file, kernel::host_arch(), variables[static_cast<size_t>(variable)].die, *site);
  };
  EXPECT_TRUE(locate(0).place);
  (*file)->slow_places() = 20;  // little time is left
  EXPECT_FALSE(locate(0).place);
  EXPECT_EQ((*file)->slow_places(), 21);
  EXPECT_TRUE(locate(1).place);
  const TimeLimit limit{std::chrono::nanoseconds(0)};
  EXPECT_THROW(locate(0), TookTooLong);
}

// Takes what is left of the memory, but for blocks of some hundred bytes.
class LargeMemory {
 public:
  LargeMemory() {
    constexpr size_t kSmallBytes = 1000, kLeastBytes = 2048, kMostBytes = 1 << 20;
    void* small[400];
    for (void*& block : small) block = ::malloc(kSmallBytes);
    rlimit limit = {};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 1;
    ::setrlimit(RLIMIT_AS, &limit);
    for (size_t bytes = kMostBytes; bytes >= kLeastBytes; bytes /= 2)
      while (void** block = static_cast<void**>(::malloc(bytes))) {
        *block = taken_;
        taken_ = block;
      }
    for (size_t i = 0; i < std::size(small); i += 2) ::free(small[i]);  // not neighbours: they stay small
  }
  ~LargeMemory() {
    while (taken_ != nullptr) ::free(std::exchange(taken_, static_cast<void**>(*taken_)));
  }
  LargeMemory(const LargeMemory&) = delete;
  LargeMemory& operator=(const LargeMemory&) = delete;

 private:
  void** taken_ = nullptr;
};

// libdw would end the process.
TEST_F(HostileDwarf, MemoryMayRunOut) {
  if (!MemoryLimit::is_supported()) GTEST_SKIP() << "the sanitizer needs the memory";
  std::string source = "int work(int x) {\n";
  for (int i = 0; i < 200; ++i) source += "x += x * 3;\n";  // the table of their lines takes some KB
  DebugInfoTest::open(source + "return x; }\nint main(void) { return 0; }", "-g -O0 -no-pie");
  const auto frames_without_memory = [&] {
    const LargeMemory taken;
    return debug_->frames_at(work_);
  };
  EXPECT_EXIT(
      {
        const bool is_empty = frames_without_memory().empty();
        ::_exit(is_empty && !debug_->status() && debug_->frames_at(work_).empty() ? 0 : 3);
      },
      ::testing::ExitedWithCode(0), "");
}

// Five million rows of one byte each; libdw would take 100 bytes for each.
TEST_F(HostileDwarf, LineTablesMayBeLarge) {
  DebugInfoTest::open(program_with_ranges_and_rows(".fill 5000000, 1, 0x14"), "-no-pie -fno-pie");
  const MemoryLimit memory(1 << 30);
  EXPECT_TRUE(debug_->statements_of(work_).empty());
  EXPECT_LT(memory.taken_bytes(), 64U << 20);
  ASSERT_FALSE(debug_->status());
  EXPECT_THAT(debug_->status().error().message, ::testing::HasSubstr("too much memory"));
  EXPECT_FALSE(file_->debug_info());
}

// Units of twelve bytes in the file, of each of which libdw makes some hundred bytes.
TEST_F(HostileDwarf, UnitsMayTakeTooMuchMemory) {
  if (!MemoryLimit::is_supported()) GTEST_SKIP() << "a sanitizer's allocator ends the process";
  open(std::string(kWork) + R"(
    .uleb128 0, 0
    .popsection
    .pushsection .debug_info, "", @progbits
    .subsection 1
    .rept 200000
    .long 8; .short 4; .long 0; .short 8
    .endr
    .previous
    .skip 0)");
  const MemoryLimit limit(16 << 20);
  EXPECT_FALSE(debug_->knows(work_));
  EXPECT_FALSE(debug_->status());
  EXPECT_TRUE(debug_->frames_at(work_).empty());
  EXPECT_TRUE(debug_->arguments(types_, work_, "").empty());
}

// Calls `read` while there is no time left.
template <class Read>
void read_too_long(Read read) {
  const TimeLimit limit{std::chrono::nanoseconds(0)};
  EXPECT_THROW(read(), TookTooLong);
}

// What takes too long within the time for hints is read again for values.
TEST_F(HostileDwarf, WhatTookTooLongIsReadAgain) {
  const std::string path = directory_.build("program", R"(
__attribute__((noinline)) static int work(int x) { { int y = x; asm volatile("" : "+r"(y)); x += y; } return x; }
int main(int n, char **) { return work(n) + work(n + 1) + 1; }
)",
                                            "-g -O1 -no-pie");
  const auto image = ElfImage::open(path);
  ASSERT_TRUE(image);
  const uint64_t work = ElfFile::open(path)->find_function("work")->address;
  const auto file = dwarf::File::open(*image, {});
  ASSERT_TRUE(file);
  read_too_long([&] { (*file)->units(); });
  ASSERT_GE((*file)->units().size(), 1u);
  read_too_long([&] { (*file)->function_at(work); });
  const auto function = (*file)->function_at(work);
  ASSERT_TRUE(function);
  const Dwarf_Die unit = (*file)->unit_at(work)->die;
  read_too_long([&] { (*file)->has_bounded_lines(unit); });
  EXPECT_TRUE((*file)->has_bounded_lines(unit));
  read_too_long([&] { (*file)->calls().calls_to(function->die); });
  const std::vector<dwarf::Call>* calls = (*file)->calls().calls_to(function->die);
  ASSERT_NE(calls, nullptr);
  EXPECT_EQ(calls->size(), 2u);
}

TEST_F(HostileDwarf, BlocksThatTookTooLongAreReadAgain) {
  open(std::string(kWork) + R"(
    .uleb128 7; .long behind - unit; .quad work, 32
    behind: .skip 3)");
  const auto image = ElfImage::open(directory_.path("program"));
  const auto file = dwarf::File::open(*image, {});
  ASSERT_TRUE(file);
  Scopes scopes((*file)->function_at(work_)->die);
  EXPECT_FALSE(scopes.has_read(work_));
  read_too_long([&] { scopes.at(work_); });
  EXPECT_FALSE(scopes.has_read(work_));
  EXPECT_EQ(scopes.at(work_).size(), 2u);
  EXPECT_TRUE(scopes.has_read(work_));
  EXPECT_EQ(scopes.at(work_ + 32).size(), 1u);
}

// Programs can name any file as one that has a part of their debug information.
TEST_F(HostileDwarf, OnlyDebugInformationInOtherFilesCounts) {
  if (!has_tool("objcopy")) GTEST_SKIP() << "needs objcopy";
  const std::string large = "char large[1 << 20] = {1};\nint main(void) { return large[0]; }";
  const std::string flags = " -no-pie -Wl,--build-id=0x0101010101010101010101010101010101010101";
  const std::string program = directory_.build("program", "int main(void) { return 0; }", "-g -no-pie");
  const auto counted = [&](const std::string& other) {
    directory_.write("link", std::string(other) + '\0' + std::string(20, '\1'));
    EXPECT_TRUE(run("objcopy --remove-section .gnu_debugaltlink " + program));
    EXPECT_TRUE(run("objcopy --add-section .gnu_debugaltlink=" + directory_.path("link") + " " + program));
    const auto image = ElfImage::open(program);
    const auto file = dwarf::File::open(*image, {});
    return (*file)->disk_bytes() - dwarf::disk_bytes_of(image->file());
  };
  directory_.build("without", large, flags);
  EXPECT_EQ(counted("without"), 0u);
  directory_.build("with", large, "-g" + flags);
  EXPECT_GT(counted("with"), 100u);
  EXPECT_LT(counted("with"), 100'000u);
}

// Looking up the unit is enough to know how long the rest may take.
TEST_F(HostileDwarf, APartCountsOnceItIsFound) {
  DebugInfoTest::open("int work(int x) { return x; } int main(void) { return 0; }", "-g -gsplit-dwarf -no-pie");
  const auto image = ElfImage::open(directory_.path("program"));
  const auto file = dwarf::File::open(*image, {});
  ASSERT_TRUE(file);
  const uint64_t before = (*file)->disk_bytes();
  EXPECT_EQ(before, dwarf::disk_bytes_of(image->file()));
  const dwarf::Unit* unit = (*file)->unit_at(work_);
  ASSERT_NE(unit, nullptr);
  if (!unit->missing_part.empty()) GTEST_SKIP() << "needs the capability CAP_SYS_CHROOT";
  EXPECT_GT((*file)->disk_bytes(), before);
}

// libdw would open the file by itself, and wait for its other end.
TEST_F(HostileDwarf, ASharedFileOrAPartMayBeAFifo) {
  if (!has_tool("objcopy")) GTEST_SKIP() << "needs objcopy";
  const char* source =
      "struct pair { int one; }; int work(struct pair *p) { return p->one; } int main(void) { return 0; }";
  const std::string path = directory_.build("split", source, "-g -O1 -gsplit-dwarf -no-pie");
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    if (entry.path().extension() == ".dwo") {
      std::filesystem::remove(entry.path());
      ASSERT_EQ(::mkfifo(entry.path().c_str(), 0600), 0);
    }
  const auto split = ElfFile::open(path);
  const auto debug = *split->debug_info();
  const uint64_t work = split->find_function("work")->address;
  EXPECT_FALSE(debug->knows(work));
  EXPECT_THAT(debug->missing_part(work), ::testing::EndsWith(".dwo"));

  const std::string shared = directory_.build("shared", source, "-g -O1 -no-pie");
  ASSERT_EQ(::mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  directory_.write("link", std::string("fifo\0", 5) + std::string(20, '\1'));
  ASSERT_TRUE(run("objcopy --add-section .gnu_debugaltlink=" + directory_.path("link") + " " + shared));
  const auto whole = ElfFile::open(shared);
  EXPECT_TRUE((*whole->debug_info())->knows(whole->find_function("work")->address));
}

}  // namespace
}  // namespace espy::symbols
