// What DWARF tells of programs that are compiled here, in several of its forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "symbols/debug_info.h"
#include "symbols/elf_file.h"
#include "symbols/go_functions.h"
#include "symbols_debug_info_support.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::has_tool;
using testing::TempDir;

constexpr const char* kSource = R"(struct pair { int one; int two; };
struct list { struct list *next; char name[8]; unsigned low : 3; unsigned high : 5; };
static volatile int sink;
static inline __attribute__((always_inline)) void note(int what) {
  sink += what;
}
__attribute__((noipa)) long work(struct pair both, const char *text, struct list *list, double of) {
  note(both.one);
  note(both.two);
  return both.one + text[0] + list->low + (long)of;
}
int main(void) {
  struct list list = {0, "name", 1, 2};
  return (int)work((struct pair){1, 2}, "x", &list, 0.5);
}
)";

std::string register_text(uint32_t offset) { return kernel::register_name(kernel::host_arch(), offset); }

std::string where(const std::vector<DebugVariable>& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, &DebugVariable::name);
  if (found == variables.end()) return "no such variable";
  return found->place ? types::to_string(*found->place, register_text) : found->why;
}

// By the flags of the compiler.
class DebugInfoOf : public DebugInfoTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    DebugInfoTest::SetUp();
    if (!IsSkipped()) open(kSource, GetParam());
  }
};

TEST_P(DebugInfoOf, KnowsArgumentsAtTheEntry) {
  const auto arguments = debug_->arguments(types_, work_, "");
  ASSERT_EQ(arguments.size(), 4u);
  EXPECT_EQ(where(arguments, "both"), "di");
  EXPECT_EQ(where(arguments, "text"), "si");
  EXPECT_EQ(where(arguments, "list"), "dx");
  EXPECT_EQ(where(arguments, "of"), "is in a vector register, which probes cannot read");
  EXPECT_EQ(arguments[0].c_type, "struct pair");
  EXPECT_EQ(arguments[1].c_type, "const char *");
}

TEST_P(DebugInfoOf, ReadsStructsWhenTheyAreAskedFor) {
  const types::TypeId pointer = debug_->arguments(types_, work_, "")[2].type;
  ASSERT_EQ(types_[pointer].kind, types::Kind::kPointer);
  EXPECT_EQ(types_[pointer].space, types::AddressSpace::kUser);
  const types::TypeId list = types_[pointer].element;
  EXPECT_FALSE(types_[list].complete);
  ASSERT_TRUE(types_.complete_by_origin(list));
  ASSERT_EQ(types_[list].members.size(), 4u);
  EXPECT_EQ(types_[types_[list].members[0].type].element, list);
  EXPECT_EQ(types::to_string(types_, types_[list].members[1].type), "string[8]");
  EXPECT_EQ(types_[list].members[3].offset_bits, 16u * 8 + 3);
  EXPECT_EQ(types_[list].members[3].bit_size, 5u);
}

TEST_P(DebugInfoOf, KnowsResults) {
  const auto result = debug_->result(types_, work_);
  ASSERT_TRUE(result && result->place);
  EXPECT_EQ(types::to_string(*result->place, register_text), "ax");
  EXPECT_FALSE(debug_->result(types_, 1));
}

TEST_P(DebugInfoOf, FindsEachInlinedCopy) {
  const std::vector<Statement> copies = debug_->statements("program.c", 5, 0);
  ASSERT_EQ(copies.size(), 2u);
  for (const Statement& copy : copies) {
    EXPECT_EQ(copy.function, "note");
    EXPECT_EQ(copy.inlined_into, "work");
    EXPECT_NE(where(debug_->arguments(types_, copy.address, "note"), "what"), "no such variable");
  }
  EXPECT_EQ(debug_->inlined_copies("note").size(), 2u);
  EXPECT_TRUE(debug_->inlined_copies("work").empty());
}

TEST_P(DebugInfoOf, TellsLinesAndFiles) {
  EXPECT_THAT(debug_->lines("program.c"), ::testing::Contains(8u));
  EXPECT_THAT(debug_->files(), ::testing::Contains(::testing::EndsWith("program.c")));
  EXPECT_TRUE(debug_->statements("gram.c", 8, 0).empty());
  EXPECT_TRUE(debug_->statements("program.c", 100, 0).empty());
  EXPECT_FALSE(debug_->knows(1));
}

INSTANTIATE_TEST_SUITE_P(Forms, DebugInfoOf,
                         ::testing::Values("-g -O0", "-g -O2", "-g -O2 -gdwarf-4", "-g -O0 -no-pie", "-g -O2 -gz",
                                           "-g -O2 -gsplit-dwarf", "-g -O2 -gsplit-dwarf -gz"));

TEST_F(DebugInfoTest, CharacterHasTheSignThatItWasCompiledWith) {
  const std::string source = "int work(char c) { return c; } int main(void) { return work(1); }";
  for (const bool is_signed : {true, false}) {
    open(source, is_signed ? "-g -O1 -fsigned-char" : "-g -O1 -funsigned-char");
    EXPECT_EQ(debug_->arguments(types_, work_, "").at(0).type, types_.char_type(is_signed));
  }
}

TEST_F(DebugInfoTest, BitFieldsCountForTheAlignment) {
  open(
      "struct flags { unsigned long a : 3, b : 61; }; unsigned long work(struct flags *of) { return of->b; }"
      "int main(void) { struct flags of = {1, 2}; return work(&of); }",
      "-g -O1");
  const types::TypeId flags = types_[debug_->arguments(types_, work_, "").at(0).type].element;
  ASSERT_TRUE(types_.complete_by_origin(flags));
  EXPECT_EQ(types_[flags].align_bytes, 8u);
}

TEST(DebugInfo, SaysHowToGetIt) {
  if (!has_tool("cc")) GTEST_SKIP() << "there is no C compiler";
  const TempDir directory;
  const auto file = ElfFile::open(directory.build("program", kSource, "-O1 -s"));
  ASSERT_TRUE(file);
  const auto debug = file->debug_info();
  ASSERT_FALSE(debug);
  EXPECT_THAT(debug.error().message, ::testing::HasSubstr("has no debug information"));
  EXPECT_THAT(debug.error().hint, ::testing::HasSubstr("--debuginfo DIR"));
  EXPECT_FALSE(file->go_binary());
}

TEST(Go, StepsOverTheStackCheck) {
  const auto behind = [](std::vector<uint8_t> code) { return after_stack_check((*kernel::find_arch("x86_64")), code); };
  // cmp rsp, [r14+16]; jbe +0x57; sub rsp, 24
  EXPECT_EQ(behind({0x49, 0x3b, 0x66, 0x10, 0x76, 0x57, 0x48, 0x83, 0xec, 0x18}), 6u);
  // lea r12, [rsp-416]; cmp r12, [r14+16]; jbe +0xbe
  EXPECT_EQ(behind({0x4c, 0x8d, 0xa4, 0x24, 0x60, 0xfe, 0xff, 0xff, 0x4d, 0x3b,
                    0x66, 0x10, 0x0f, 0x86, 0xbe, 0,    0,    0,    0x48, 0x81}),
            18u);
  // cmp rax, 2; jbe: no check of the stack
  EXPECT_EQ(behind({0x48, 0x83, 0xf8, 0x02, 0x76, 0x57, 0xc3}), 0u);
}

TEST(Go, PassesValuesMemberByMember) {
  types::Types types;
  const kernel::Arch& arch = (*kernel::find_arch("x86_64"));
  const types::TypeId number = types.int_type(4, true);
  const auto places = go_locations(types, arch, {types.int64(), number, types.float_type(8), types.array(number, 2)});
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(types::to_string(*places[0], register_text), "ax");
  EXPECT_EQ(types::to_string(*places[1], register_text), "bx");
  EXPECT_FALSE(places[2]);
  EXPECT_EQ(types::to_string(*places[3], register_text), "[sp+8]");
}

}  // namespace
}  // namespace espy::symbols
