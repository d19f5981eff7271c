// Releases as texts and numbers, and the error about a later format.
#include <gtest/gtest.h>

#include "base/format_version.h"

namespace espy {
namespace {

TEST(FormatVersion, ReleasesAreTextsAndNumbers) {
  EXPECT_EQ(parse_release("1.2.3"), release_number(1, 2, 3));
  EXPECT_EQ(release_text(release_number(12, 0, 99)), "12.0.99");
  for (const char* text : {"", "1", "1.2", "1.2.3.4", "1.-2.3", "1.2.100", "a.b.c", "100000.0.0"})
    EXPECT_FALSE(parse_release(text)) << text;
}

TEST(FormatVersion, TheHintNamesTheRelease) {
  const Error error = fail_later_format("x is a recording", 7, release_number(2, 1, 0)).value();
  EXPECT_EQ(error.message.find("x is a recording of format 7, which espy "), 0u);
  EXPECT_EQ(error.hint, "espy 2.1.0 or later reads it");
}

}  // namespace
}  // namespace espy
