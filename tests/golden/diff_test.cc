#include "golden/support/diff.h"

#include <gtest/gtest.h>

namespace espy::golden {
namespace {

constexpr std::string_view kHead = "--- expected\n+++ actual\n";

std::string diff(std::string_view expected, std::string_view actual) {
  const std::string out = unified_diff(expected, actual);
  EXPECT_TRUE(out.starts_with(kHead)) << out;
  return out.substr(kHead.size());
}

TEST(Diff, NothingForEqualTexts) {
  EXPECT_EQ(unified_diff("", ""), "");
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n"), "");
}

TEST(Diff, ChangedLineWithThreeLinesOfContext) {
  EXPECT_EQ(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(Diff, AddedAndRemovedLines) {
  EXPECT_EQ(diff("a\nb\n", "a\nx\nb\n"), "@@ -1,2 +1,3 @@\n a\n+x\n b\n");
  EXPECT_EQ(diff("a\nx\nb\n", "a\nb\n"), "@@ -1,3 +1,2 @@\n a\n-x\n b\n");
  EXPECT_EQ(diff("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
  EXPECT_EQ(diff("a\n", ""), "@@ -1,1 +0,0 @@\n-a\n");
}

TEST(Diff, ChangesMoreThanSixLinesApartAreHunksOfTheirOwn) {
  EXPECT_EQ(diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"),
            "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
  EXPECT_EQ(diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n"),
            "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

TEST(Diff, LinesInCommonBetweenChangesStayContext) {
  EXPECT_EQ(diff("a\nb\nc\nd\n", "b\nc\nx\nd\ne\n"), "@@ -1,4 +1,5 @@\n-a\n b\n c\n+x\n d\n+e\n");
}

TEST(Diff, MissingNewlineAtTheEnd) {
  EXPECT_EQ(diff("a\nb\n", "a\nb"), "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n");
}

TEST(Diff, TextsTooLongToCompareLineByLine) {
  std::string expected = "same\n", actual = "same\n";
  for (int i = 0; i < 5000; ++i) {
    expected += "e" + std::to_string(i) + "\n";
    actual += "a" + std::to_string(i) + "\n";
  }
  const std::string out = diff(expected, actual);
  EXPECT_TRUE(out.starts_with("@@ -1,5001 +1,5001 @@\n same\n-e0\n-e1\n")) << out.substr(0, 100);
  EXPECT_TRUE(out.ends_with("\n+a4998\n+a4999\n"));
}

}  // namespace
}  // namespace espy::golden
