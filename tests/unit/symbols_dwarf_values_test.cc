// Constants in debug information: enumerators and variables without a place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "symbols_debug_info_support.h"

namespace espy::symbols {
namespace {

using testing::has_tool;

constexpr const char* kEnums =
    R"(enum plain { P0, P127 = 127, P128, P255 = 255, P256, P40000 = 40000, P65535 = 65535, P65536 };
enum high { H31 = 0x80000000u, H32 = 0xffffffffu };
enum mixed { M1 = -1, M200 = 200, M_200 = -200, M40000 = 40000 };
enum wide { W63 = 0x8000000000000000ull, W1 = 1 };
enum __attribute__((packed)) byte { B200 = 200, B1 = 1 };
enum __attribute__((packed)) small { S100 = 100, S_56 = -56 };
__attribute__((noipa)) int work(enum plain plain, enum high high, enum mixed mixed, enum wide wide, enum byte byte,
                                enum small small) {
  return 1;
}
int main(void) { return work(P128, H31, M200, W63, B200, S_56); }
)";

// By the flags of the compiler, the first word of which is the compiler.
class EnumeratorsOf : public DebugInfoTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EnumeratorsOf, HaveTheValuesOfTheSource) {
  const std::string flags = GetParam();
  const std::string compiler = flags.substr(0, flags.find(' '));
  if (!has_tool(compiler)) GTEST_SKIP() << "there is no " << compiler;
  open(kEnums, flags.substr(compiler.size()), compiler);
  std::map<std::string, std::map<std::string, int64_t>> found;
  std::map<std::string, bool> is_signed;
  for (const DebugVariable& each : debug_->arguments(types_, work_, "")) {
    for (const types::Enumerator& one : types_[each.type].enumerators) found[each.name][one.name] = one.value;
    is_signed[each.name] = types_[each.type].is_signed;
  }
  const auto lowest = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(found["plain"],
              ::testing::ElementsAre(std::pair("P0", 0), std::pair("P127", 127), std::pair("P128", 128),
                                     std::pair("P255", 255), std::pair("P256", 256), std::pair("P40000", 40000),
                                     std::pair("P65535", 65535), std::pair("P65536", 65536)));
  EXPECT_THAT(found["high"], ::testing::ElementsAre(std::pair("H31", 0x80000000), std::pair("H32", 0xffffffff)));
  EXPECT_THAT(found["mixed"], ::testing::ElementsAre(std::pair("M1", -1), std::pair("M200", 200),
                                                     std::pair("M40000", 40000), std::pair("M_200", -200)));
  EXPECT_THAT(found["wide"], ::testing::ElementsAre(std::pair("W1", 1), std::pair("W63", lowest)));
  EXPECT_THAT(found["byte"], ::testing::ElementsAre(std::pair("B1", 1), std::pair("B200", 200)));
  EXPECT_THAT(found["small"], ::testing::ElementsAre(std::pair("S100", 100), std::pair("S_56", -56)));
  EXPECT_THAT(is_signed,
              ::testing::ElementsAre(std::pair("byte", false), std::pair("high", false), std::pair("mixed", true),
                                     std::pair("plain", false), std::pair("small", true), std::pair("wide", false)));
}

INSTANTIATE_TEST_SUITE_P(Compilers, EnumeratorsOf,
                         ::testing::Values("gcc -O1 -g", "gcc -O1 -gdwarf-4", "gcc -O1 -gdwarf-2 -gstrict-dwarf",
                                           "clang -O1 -g", "clang -O1 -gdwarf-2"));

constexpr const char* kConstants = R"(
__attribute__((noipa)) long use(long value) { return value; }
__attribute__((noipa)) int work(int n) {
  int two_hundred = 200;
  int negative = -56;
  signed char byte = -56;
  unsigned char high_byte = 255;
  short low = -300;
  long medium = 40000;
  long large = 0x90000000L;
  unsigned high = 3000000000u;
  n += use(n);
  return n + use(n);
}
int main(void) { return work(1); }
)";

class ConstantsOf : public DebugInfoTest, public ::testing::WithParamInterface<const char*> {};

// Returns the value of a variable that is a constant, as code that reads it has it.
int64_t constant(const types::Types& types, const DebugVariable& variable) {
  if (!variable.place || variable.place->pieces.size() != 1) return 0x5555;
  const types::LocationPiece& piece = variable.place->pieces[0];
  if (piece.kind != types::LocationPiece::Kind::kValue || piece.steps.size() != 1) return 0x5556;
  const types::Type& type = types[variable.type];
  const uint32_t unused_bits = 64 - type.size_bytes * 8;
  const uint64_t shifted = static_cast<uint64_t>(piece.steps[0].operand) << unused_bits;
  return type.is_signed ? static_cast<int64_t>(shifted) >> unused_bits : static_cast<int64_t>(shifted >> unused_bits);
}

TEST_P(ConstantsOf, HaveTheValuesOfTheSource) {
  const std::string flags = GetParam();
  const std::string compiler = flags.substr(0, flags.find(' '));
  if (!has_tool(compiler)) GTEST_SKIP() << "there is no " << compiler;
  open(kConstants, flags.substr(compiler.size()), compiler);
  std::map<std::string, int64_t> found;
  for (const DebugVariable& each : debug_->locals(types_, work_ + 1, "")) found[each.name] = constant(types_, each);
  found.erase("n");
  EXPECT_THAT(found,
              ::testing::ElementsAre(std::pair("byte", -56), std::pair("high", 3000000000), std::pair("high_byte", 255),
                                     std::pair("large", 0x90000000), std::pair("low", -300), std::pair("medium", 40000),
                                     std::pair("negative", -56), std::pair("two_hundred", 200)));
}

INSTANTIATE_TEST_SUITE_P(Compilers, ConstantsOf,
                         ::testing::Values("gcc -O2 -g", "gcc -O2 -gdwarf-2 -gstrict-dwarf", "clang -O2 -g"));

constexpr const char* kBases = R"(struct First { int one; char two; };
struct Second { long three; };
struct Both : First, Second { int four; unsigned five : 3, six : 9; };
extern "C" __attribute__((noipa)) int work(Both *both) { return both->four; }
int main() { Both both; both.four = 0; return work(&both); }
)";

class MembersOf : public DebugInfoTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(MembersOf, HaveTheirOffsets) {
  if (!has_tool("g++")) GTEST_SKIP() << "there is no g++";
  open(kBases, GetParam(), "g++");
  const auto arguments = debug_->arguments(types_, work_, "");
  ASSERT_EQ(arguments.size(), 1u);
  const types::TypeId both = types_[arguments[0].type].element;
  ASSERT_TRUE(types_.complete_by_origin(both));
  const auto offset_bits = [&](const char* name) {
    const auto found = types::find_member(types_, both, name);
    return found ? static_cast<int>(found->offset_bits) : -1;
  };
  EXPECT_EQ(offset_bits("one"), 0);
  EXPECT_EQ(offset_bits("two"), 32);
  EXPECT_EQ(offset_bits("three"), 64);
  EXPECT_EQ(offset_bits("four"), 128);
  EXPECT_EQ(offset_bits("five"), 160);
  EXPECT_EQ(offset_bits("six"), 163);
}

INSTANTIATE_TEST_SUITE_P(Versions, MembersOf,
                         ::testing::Values("-gdwarf-2 -gstrict-dwarf", "-gdwarf-3 -gstrict-dwarf",
                                           "-gdwarf-4 -gstrict-dwarf", "-gdwarf-5"));

constexpr const char* kDefaulted = R"(struct Copied { Copied(const Copied&) = default; Copied(int, int); long a; };
struct Derived : Copied { int b; using Copied::Copied; };
extern "C" __attribute__((noipa)) int work(Derived value, int after) { return value.b + after; }
Copied::Copied(int one, int two) : a(one + two) {}
int main() { return work(Derived(0, 0), 0); }
)";

class DefaultedCopiesOf : public DebugInfoTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DefaultedCopiesOf, ArePassedInRegisters) {
  if (!has_tool("g++")) GTEST_SKIP() << "there is no g++";
  if (kernel::host_arch().name != "x86_64") GTEST_SKIP() << "for one calling convention";
  open(kDefaulted, GetParam(), "g++");
  const auto arguments = debug_->arguments(types_, work_, "");
  ASSERT_EQ(arguments.size(), 2u);
  const auto name = [](uint32_t offset) { return kernel::register_name(kernel::host_arch(), offset); };
  ASSERT_TRUE(arguments[0].place && arguments[1].place);
  EXPECT_EQ(types::to_string(*arguments[0].place, name), "8 bytes of di, 8 bytes of si");
  EXPECT_EQ(types::to_string(*arguments[1].place, name), "dx");
}

INSTANTIATE_TEST_SUITE_P(Versions, DefaultedCopiesOf, ::testing::Values("-gdwarf-4 -gstrict-dwarf", "-gdwarf-4", "-g"));

constexpr const char* kUndefined = R"(#include <string>
extern "C" __attribute__((noinline)) int work(int before, std::wstring value, int after) { return before + after; }
int main() { return work(0, L"", 0); }
)";

// Clang only declares classes that are compiled elsewhere. Where such an argument is tells that its address is passed.
TEST_F(DebugInfoTest, AClassWithoutADefinitionIsWhereItsPlaceSays) {
  if (!has_tool("clang++")) GTEST_SKIP() << "there is no clang++";
  open(kUndefined, "-g -O0", "clang++");
  const auto arguments = debug_->arguments(types_, work_, "");
  ASSERT_EQ(arguments.size(), 3u);
  if (types_[arguments[1].type].complete) GTEST_SKIP() << "this compiler defines it";
  ASSERT_TRUE(arguments[0].place && arguments[1].place && arguments[2].place);
  if (kernel::host_arch().name != "x86_64") return;
  const auto name = [](uint32_t offset) { return kernel::register_name(kernel::host_arch(), offset); };
  EXPECT_EQ(types::to_string(*arguments[1].place, name), "[si]");
  EXPECT_EQ(types::to_string(*arguments[2].place, name), "dx");
}

// Pieces that end before the struct does leave out its last members, but for the padding.
TEST_F(DebugInfoTest, WhatPiecesLeaveOutAtTheEndIsOptimisedOut) {
  if (!has_tool("clang")) GTEST_SKIP() << "there is no clang";
  open(R"(
struct pair { int x, y; };
__attribute__((noinline)) int work(struct pair pair, int n) { asm volatile("" ::: "memory"); return pair.y + n; }
int main(int n, char **v) { struct pair pair = {n + 6, n + 7}; return work(pair, 2); }
)",
       "-O2 -g", "clang");
  EXPECT_EQ(debug_->arguments(types_, work_, "").at(0).why, "is partly optimised out here");
  open(R"(
struct padded { long p; int q; };
__attribute__((noinline)) int work(struct padded padded) { asm volatile("" ::: "memory"); return padded.p + padded.q; }
int main(int n, char **v) { struct padded padded = {n + 100, n + 200}; return work(padded); }
)",
       "-O2 -g", "clang");
  EXPECT_EQ(debug_->arguments(types_, work_, "").at(0).why, "");
  EXPECT_TRUE(debug_->arguments(types_, work_, "").at(0).place);
}

// Arguments that are the same in all calls are not passed, so those behind them are not where the convention has them.
TEST_F(DebugInfoTest, BehindARemovedArgumentNothingIsByConvention) {
  if (!has_tool("clang")) GTEST_SKIP() << "there is no clang";
  constexpr const char* kSource = R"(
__attribute__((noinline)) static long use(long value) { asm volatile(""); return value; }
__attribute__((noinline)) static long work(int k, long a, long b, long c, long d, long e, long f, long g, long h) {
  long r = use(k) + use(a);
  r += use(b) + c + d + e + f;
  r += use(g) * 2;
  return r + use(h) * 3;
}
int main(int n, char **v) {
  long r = 0;
  for (int i = 0; i < 2; i++) r += work(5, 1 + i, 2, 3 + n, 4 + n, 5 + n, 6 + n, 7 + n, 8 + n);
  return r & 1;
}
)";
  open(kSource, "-O2 -g", "clang");
  std::map<std::string, std::string> why;
  for (const DebugVariable& each : debug_->arguments(types_, work_, "")) why[each.name] = each.why;
  EXPECT_EQ(why["k"], "");
  EXPECT_EQ(why["a"], "");
  EXPECT_EQ(why["g"], "");
  EXPECT_THAT(why["h"], ::testing::AnyOf("comes after an argument that the compiler may have removed",
                                         ::testing::StartsWith("cannot be known here: the ")));
}

}  // namespace
}  // namespace espy::symbols
