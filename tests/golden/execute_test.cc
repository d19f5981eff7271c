#include "golden/support/execute.h"

#include <gtest/gtest.h>

namespace espy::golden {

TEST(WithoutTexts, KeepsPlacesAndIds) {
  EXPECT_EQ(without_texts("a.bt:3:11: error: an aggregation is no value [not-assigned]\n"
                          "  3 | begin { @[count()] = 1; }\n"
                          "    |           ^~~~~~~ assign it\n"
                          "a.bt:4:1: note: expanded from `b`\n"
                          "  4 | b(1)\n"
                          "    | ^\n",
                          "a.bt"),
            "3:11 error [not-assigned]\n4:1 note\n");
}

TEST(WithoutTexts, NamesOtherFiles) {
  EXPECT_EQ(without_texts("parts/b.bt:1:2: warning: never true [never-true]\n 1 | x\n   | ^\n", "a.bt"),
            "parts/b.bt:1:2 warning [never-true]\n");
}

TEST(WithoutTexts, KeepsWhatIsNoDiagnostic) {
  EXPECT_EQ(
      without_texts("error: no option `--cuont` [unknown-option]\n  hint: did you mean `--count`?\nespy: it ends\n"
                    "  7 | not below a diagnostic\n",
                    "a.bt"),
      "error [unknown-option]\nespy: it ends\n  7 | not below a diagnostic\n");
  EXPECT_EQ(without_texts("", "a.bt"), "");
  EXPECT_EQ(without_texts("WARNING: strings were cut: 1\n", "a.bt"), "WARNING: strings were cut: 1\n");
}

}  // namespace espy::golden
