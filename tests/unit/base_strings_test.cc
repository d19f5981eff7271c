#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/strings.h"

namespace espy {
namespace {

using ::testing::ElementsAre;

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a:b:c", ':'), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("", ':'), ElementsAre(""));
  EXPECT_THAT(split(":", ':'), ElementsAre("", ""));
  EXPECT_THAT(split("a::b:", ':'), ElementsAre("a", "", "b", ""));
}

TEST(Trim, TakesSpaceFromBothEnds) {
  EXPECT_EQ(trim("  a b\t\r\n"), "a b");
  EXPECT_EQ(trim(" \v\f "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({}, ", "), "");
  const std::vector<std::string> one = {"a"}, three = {"a", "", "c"};
  EXPECT_EQ(join(one, ", "), "a");
  EXPECT_EQ(join(three, ", "), "a, , c");
}

TEST(ToLower, LeavesOtherBytesAlone) { EXPECT_EQ(to_lower("KProbe_9\xc3\x84"), "kprobe_9\xc3\x84"); }

TEST(ParseInt, ReadsEveryBase) {
  EXPECT_EQ(parse_int("0"), 0);
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("+42"), 42);
  EXPECT_EQ(parse_int("-42"), -42);
  EXPECT_EQ(parse_int("0x2A"), 42);
  EXPECT_EQ(parse_int("0X2a"), 42);
  EXPECT_EQ(parse_int("-0x10"), -16);
  EXPECT_EQ(parse_int("052"), 42);
  EXPECT_EQ(parse_int("00"), 0);
}

TEST(ParseInt, RefusesWhatIsNotANumber) {
  for (const char* text :
       {"", "-", "+", "0x", "-0x", "x", "1 ", " 1", "12a", "08", "--1", "+-1", "-+1", "0x-1", "1.0"}) {
    EXPECT_EQ(parse_int(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseInt, KnowsItsLimits) {
  EXPECT_EQ(parse_int("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_int("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_int("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(parse_int("-18446744073709551615"), std::nullopt);
  EXPECT_EQ(parse_int("0xffffffffffffffff"), -1) << "addresses keep their bits";
  EXPECT_EQ(parse_int("18446744073709551615"), -1);
  EXPECT_EQ(parse_int("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_int("0x10000000000000000"), std::nullopt);
}

TEST(Escape, GivesWhatOneWouldType) {
  EXPECT_EQ(escape("a \"b\"\\\n\t\r"), "a \\\"b\\\"\\\\\\n\\t\\r");
  EXPECT_EQ(escape(std::string_view("\0\x7f\xff", 3)), "\\x00\\x7f\\xff");
  EXPECT_EQ(escape(""), "");
}

TEST(Glob, MatchesTheWholeText) {
  EXPECT_TRUE(glob_match("vfs_read", "vfs_read"));
  EXPECT_FALSE(glob_match("vfs_read", "vfs_readv"));
  EXPECT_FALSE(glob_match("vfs_readv", "vfs_read"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_TRUE(glob_match("", ""));
}

TEST(Glob, StarsTakeAnyRun) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("***", "abc"));
  EXPECT_TRUE(glob_match("vfs_*", "vfs_"));
  EXPECT_TRUE(glob_match("sys_*_execve", "sys_enter_execve"));
  EXPECT_TRUE(glob_match("*ab", "aaab")) << "the star gives back what the rest needs";
  EXPECT_TRUE(glob_match("a*b*c", "a-b-c-b-c"));
  EXPECT_FALSE(glob_match("a*b*c", "a-b-c-d"));
  EXPECT_TRUE(glob_match("*:*:*_read", "kprobe:vmlinux:vfs_read"));
}

TEST(Glob, IsQuickOnManyStars) {
  std::string pattern;
  for (int i = 0; i < 30; ++i) pattern += "a*";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(2000, 'a')));
}

TEST(Glob, QuestionMarkTakesExactlyOne) {
  EXPECT_TRUE(glob_match("cpu?", "cpu1"));
  EXPECT_FALSE(glob_match("cpu?", "cpu"));
  EXPECT_FALSE(glob_match("cpu?", "cpu12"));
}

TEST(Glob, Classes) {
  EXPECT_TRUE(glob_match("[a-c]x", "bx"));
  EXPECT_FALSE(glob_match("[a-c]x", "dx"));
  EXPECT_TRUE(glob_match("[0-9a-f]", "e"));
  EXPECT_TRUE(glob_match("[!0-9]", "e"));
  EXPECT_FALSE(glob_match("[^0-9]", "7"));
  EXPECT_TRUE(glob_match("sys_[er]*", "sys_read"));
  EXPECT_TRUE(glob_match("*[0-9]", "cpu12"));
  EXPECT_FALSE(glob_match("[a-c]", ""));
}

TEST(Glob, OddMembersOfClasses) {
  EXPECT_TRUE(glob_match("[]]", "]")) << "a first ] is a member";
  EXPECT_TRUE(glob_match("[!]]", "a"));
  EXPECT_FALSE(glob_match("[!]]", "]"));
  EXPECT_TRUE(glob_match("[a-]", "-")) << "a last - is a member";
  EXPECT_TRUE(glob_match("[-a]", "-"));
  EXPECT_TRUE(glob_match("[*]", "*"));
  EXPECT_FALSE(glob_match("[*]", "x"));
  EXPECT_TRUE(glob_match("[\x80-\xff]", "\xc3"));
  EXPECT_FALSE(glob_match("[\x80-\xff]", "a"));
}

TEST(Glob, AClassThatNeverClosesIsText) {
  EXPECT_TRUE(glob_match("operator[*", "operator[]"));
  EXPECT_TRUE(glob_match("a[", "a["));
  EXPECT_FALSE(glob_match("a[b", "ab"));
}

TEST(HasWildcard, SeesAllThree) {
  EXPECT_TRUE(has_wildcard("vfs_*"));
  EXPECT_TRUE(has_wildcard("cpu?"));
  EXPECT_TRUE(has_wildcard("[a]"));
  EXPECT_FALSE(has_wildcard("vfs_read"));
  EXPECT_FALSE(has_wildcard(""));
}

TEST(TakeNumber, RemovesWhatItReads) {
  std::string_view text = "7f00-8000 rest";
  EXPECT_EQ(take_number(text, 16), 0x7f00u);
  EXPECT_EQ(text, "-8000 rest");
}

TEST(TakeNumber, LeavesOtherTextAlone) {
  for (const std::string_view whole : {"", " 1", "-1", "+1", "x", "10000000000000000"}) {
    std::string_view text = whole;
    EXPECT_EQ(take_number(text, 16), std::nullopt) << whole;
    EXPECT_EQ(text, whole);
  }
}

constexpr std::array<std::string_view, 6> kNames = {"strftime", "str", "printf", "print", "pid", "tid"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest("strftme", kNames), "strftime");
  EXPECT_EQ(nearest("pritnf", kNames), "printf");
  EXPECT_EQ(nearest("PRINTF", kNames), "printf") << "case aside";
  EXPECT_EQ(nearest("prin", kNames), "print");
  EXPECT_EQ(nearest("pd", kNames), "pid");
}

TEST(Nearest, SaysNothingRatherThanNonsense) {
  EXPECT_EQ(nearest("histogram", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  constexpr std::array<std::string_view, 2> kShort = {"x", "y"};
  EXPECT_EQ(nearest("z", kShort), "") << "every word is one step from a word of one letter";
  EXPECT_EQ(nearest("X", kShort), "x");
  EXPECT_EQ(nearest("anything", {}), "");
}

TEST(Fill, ReplacesNamesByTheirValues) {
  EXPECT_EQ(fill("<{{a}}|{{b}}|{{a}}>", {{"a", "1"}, {"b", "2"}}), "<1|2|1>");
  EXPECT_EQ(fill("", {{"a", "1"}}), "");
}

TEST(Fill, LeavesValuesAndOtherBracesAlone) {
  EXPECT_EQ(fill("{{a}}{{b}}", {{"a", "{{b}}"}, {"b", "x"}}), "{{b}}x");
  EXPECT_EQ(fill("{{c}} {{ {{{a}} }} {{a", {{"a", "1"}}), "{{c}} {{ {{{a}} }} {{a");
  EXPECT_EQ(fill("{{{{a}}}}", {{"a", "1"}}), "{{1}}");
}

TEST(Nearest, TheFirstOfEqualsWins) { EXPECT_EQ(nearest("qid", kNames), "pid"); }

TEST(Escapes, AreThoseOfTheirLanguage) {
  constexpr std::string_view kText = "a\"\\\n\t\r\x01\x7f\xc3\xa9\xff<&>";
  EXPECT_EQ(escape(kText), "a\\\"\\\\\\n\\t\\r\\x01\\x7f\\xc3\\xa9\\xff<&>");
  EXPECT_EQ(json_string(kText), "\"a\\\"\\\\\\n\\t\\r\\u0001\x7f\xc3\xa9\\\\xff<&>\"");
  EXPECT_EQ(json_string("\xc2\x85"), "\"\\u0085\"");
  EXPECT_EQ(escape_markup("a\"<&>\n\x01\xff\xef\xbf\xbe\xc3\xa9"),
            "a&quot;&lt;&amp;&gt; \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
  EXPECT_EQ(escape_characters("it's", "'", "'\\'"), "it'\\''s");
  EXPECT_EQ(escape_characters("a\"b\\", "\\\""), "a\\\"b\\\\");
}

TEST(Escapes, OfBytes) {
  EXPECT_EQ(escaped("a\\b\\x41\n\xff"), "a\\b\\x5cx41\\x0a\\xff");
  EXPECT_EQ(all_escaped("a\n"), "\\x61\\x0a");
  EXPECT_EQ(hexadecimal("a\xff"), "61ff");
  EXPECT_EQ(hexadecimal("a\xff", " "), "61 ff");
}

}  // namespace
}  // namespace espy
