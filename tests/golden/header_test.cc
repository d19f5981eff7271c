#include "golden/support/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espy::golden {
namespace {

using testing::HasSubstr;

constexpr HeaderKey kKeys[] = {{"args"}, {"expect", true}, {"expect stderr", true}};

std::string error_of(std::string_view text) {
  const auto lines = read_header("x.bt", text, kKeys);
  return lines ? "" : lines.error().message;
}

TEST(Header, GivesKeysInOrderWithTheirLines) {
  const auto lines = read_header("x.bt",
                                 "#!/usr/bin/env espy\n// What it is about: this.\n\n// expect: a: b \n"
                                 "// expect stderr: c\n// args: 1\nbegin { }\n",
                                 kKeys);
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->size(), 3u);
  EXPECT_EQ((*lines)[0].key, "expect");
  EXPECT_EQ((*lines)[0].value, "a: b");
  EXPECT_EQ((*lines)[0].line_number, 4u);
  EXPECT_EQ((*lines)[1].key, "expect stderr");
  EXPECT_EQ((*lines)[2].line_number, 6u);
}

TEST(Header, UnknownKeyIsAnErrorThatListsTheKnown) {
  EXPECT_EQ(error_of("// A test.\n// expect stdrr: x\n"),
            "x.bt:2: unknown key `expect stdrr`; known: args, expect, expect stderr");
  EXPECT_THAT(error_of("// reject stderr: x\n"), HasSubstr("x.bt:1: unknown key `reject stderr`"));
  EXPECT_THAT(error_of("// wanted: x\n"), HasSubstr("unknown key `wanted`"));
}

TEST(Header, MisspeltFormsOfKnownKeysAreErrors) {
  EXPECT_THAT(error_of("// Expect: x\n"), HasSubstr("unknown key `Expect`"));
  EXPECT_THAT(error_of("// ARG: x\n"), HasSubstr("unknown key `ARG`"));
  EXPECT_THAT(error_of("// args :\n"), HasSubstr("`args:` has no value"));
  EXPECT_THAT(error_of("//args:\n"), HasSubstr("`args:` has no value"));
}

TEST(Header, ProseIsNoKey) {
  EXPECT_EQ(error_of("// Benchmarks: how fast.\n// several words here: text\n// --follow: an option\n// "
                     "tracepoint:sched:sched_switch is one\n"),
            "");
}

TEST(Header, BlockIsTheValueOfItsKey) {
  const auto lines =
      read_header("x.bt", "// args:\n//   echo a: b\n//     more\n// expect: c\n//\n//   prose\nbegin { }\n", kKeys);
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].value, "echo a: b\n  more");
  EXPECT_EQ((*lines)[0].line_number, 1u);
  EXPECT_EQ((*lines)[1].value, "c");
  EXPECT_EQ(error_of("// A test.\n// args:\n// expect: c\n"), "x.bt:2: `args:` has no value");
}

TEST(Header, KeyThatMayNotRepeatIsAnError) {
  EXPECT_EQ(error_of("// args: 1\n// args: 2\n"), "x.bt:2: `args:` is given twice, first in line 1");
}

TEST(Header, KeyBehindTheFirstLineOfTheScriptIsAnError) {
  EXPECT_THAT(error_of("begin { }\n// expect: x\n"), HasSubstr("x.bt:2: `expect:` must stand before"));
  EXPECT_EQ(error_of("begin { }\n// note: x\n"), "");
  EXPECT_EQ(error_of("begin { }\n//--- stdout\n// expect: x\n"), "") << "what is expected may look like a key";
}

}  // namespace
}  // namespace espy::golden
