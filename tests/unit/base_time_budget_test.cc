#include <gtest/gtest.h>

#include "base/limits.h"

namespace espy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimeBudget::Moment kBegin{std::chrono::hours(1)};

TEST(TimeBudget, GrowsWithTimeUpToItsMost) {
  TimeBudget budget(seconds(1));
  budget.take(seconds(2), kBegin);
  EXPECT_EQ(budget.left(kBegin), seconds(0));
  EXPECT_EQ(budget.left(kBegin + seconds(5)), milliseconds(500));
  EXPECT_EQ(budget.left(kBegin + seconds(100)), seconds(1));
}

TEST(TimeBudget, IsNotMoreThanItWasLoweredTo) {
  TimeBudget budget(seconds(2));
  EXPECT_EQ(budget.left(kBegin), seconds(2));
  budget.lower(seconds(1));
  EXPECT_EQ(budget.left(kBegin), seconds(1));
  budget.lower(seconds(3));
  EXPECT_EQ(budget.left(kBegin + seconds(100)), seconds(1));
}

}  // namespace
}  // namespace espy
