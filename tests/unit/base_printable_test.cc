#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/strings.h"

namespace espy {
namespace {

TEST(Printable, PlainTextStays) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("a\tb\nc ~"), "a\tb\nc ~");
  EXPECT_EQ(printable("für 5 µs, 日本, \U0001F600"), "für 5 µs, 日本, \U0001F600");
}

TEST(Printable, APartOfALineHasNoNewlines) { EXPECT_EQ(printable_line("a\n> b\tc für"), "a\\x0a> b\\x09c für"); }

TEST(Printable, LengthOfAUtf8Character) {
  EXPECT_EQ(utf8_length("ab"), 1u);
  EXPECT_EQ(utf8_length("ü."), 2u);
  EXPECT_EQ(utf8_length("日本"), 3u);
  EXPECT_EQ(utf8_length("\U0001F600"), 4u);
  EXPECT_EQ(utf8_length("\xf4\x8f\xbf\xbf"), 4u) << "the last one";
  for (const char* none :
       {"\x80", "\xff", "\xc3", "\xc3x", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\x97"})
    EXPECT_EQ(utf8_length(none), 0u) << none;
}

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\033]0;title\ab\r\x7f"), "a\\x1b]0;title\\x07b\\x0d\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "CSI as one character";
}

TEST(Printable, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "CSI as one byte";
  EXPECT_EQ(printable("a\xc3"), "a\\xc3") << "cut short";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "longer than it need be";
  EXPECT_EQ(printable("\xed\xa0\x80\xf5\x80\x80\x80"), "\\xed\\xa0\\x80\\xf5\\x80\\x80\\x80");
}

TEST(Printable, TextThatHidesOrTurnsAroundIsEscaped) {
  EXPECT_EQ(printable("a\u202eb\u200bc"), "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8bc");
}

TEST(ExactUtf8, TextsThatDifferStayDifferent) {
  EXPECT_EQ(exact_utf8("plain \xc3\xa4\n\\"), "plain \xc3\xa4\n\\");
  EXPECT_EQ(exact_utf8("y\xff"), "y\\xff");
  EXPECT_EQ(exact_utf8("y\\xff"), "y\\x5cxff");
  EXPECT_EQ(exact_utf8("y\\x5cxff"), "y\\x5cx5cxff");
  EXPECT_EQ(exact_utf8("\\xfg \\xF1 \\x1"), "\\xfg \\xF1 \\x1");  // not as escapes are written
  // All short texts of the characters that matter.
  const std::string alphabet("\\xf\xff\x01", 5);
  std::set<std::string> seen;
  size_t count = 0;
  for (size_t i = 0; i < 3125; ++i) {
    std::string text;
    for (size_t rest = i, n = 0; n < 5; rest /= 5, ++n) text += alphabet[rest % 5];
    seen.insert(printable_line(exact_utf8(text)));
    ++count;
  }
  EXPECT_EQ(seen.size(), count);
}

}  // namespace
}  // namespace espy
