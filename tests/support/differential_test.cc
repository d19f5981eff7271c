// A sample of random scripts before the judges, on the simulator and on the kernel where it lets us; `differential`
// runs as many as one likes.
#include "support/differential.h"

#include <gtest/gtest.h>

#include "support/generate.h"

namespace espy::differential {
namespace {

TEST(Differential, ExpressionsAgree) {
  Judges judges(KERNEL_FACTS);
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::string script;
    for (const GeneratedExpression& each : generate_expressions(seed, 20)) script += each.variable;
    bool is_rejected = false;
    EXPECT_EQ(judge(judges, script, is_rejected), "") << "seed " << seed << "\n" << script;
    EXPECT_FALSE(is_rejected) << "seed " << seed;
  }
}

TEST(Differential, FoldedExpressionsAreTheComputedOnes) {
  Judges judges(KERNEL_FACTS);
  uint32_t judged = 0;
  for (uint32_t seed = 1; judged < 100; ++seed) {
    for (const GeneratedExpression& each : generate_expressions(seed, 4)) {
      bool is_rejected = false;  // a literal form may overflow, which is an error
      EXPECT_EQ(judge(judges, each.both, is_rejected), "") << "seed " << seed << "\n" << each.both;
      judged += !is_rejected;
    }
  }
}

TEST(Differential, ProgramsAgree) {
  Judges judges(KERNEL_FACTS);
  uint32_t judged = 0;
  for (uint32_t seed = 1; judged < 100; ++seed) {
    const std::string script = generate_program(seed);
    bool is_rejected = false;
    EXPECT_EQ(judge(judges, script, is_rejected), "") << "seed " << seed << "\n" << script;
    judged += !is_rejected;
  }
}

}  // namespace
}  // namespace espy::differential
