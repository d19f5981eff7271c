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

TEST(WorkBudget, DoesNotGrowWithoutARate) {
  WorkBudget<int64_t> bytes(100);
  EXPECT_TRUE(bytes.take_if_left(60));
  EXPECT_FALSE(bytes.take_if_left(60));
  EXPECT_TRUE(bytes.take_if_left(40));
  EXPECT_EQ(bytes.left(kBegin + std::chrono::hours(1'000'000)), 0);
}

TEST(WorkBudget, GrowsByItsRateHoweverOftenItIsAsked) {
  WorkBudget<int64_t> bytes(1000, 10);
  bytes.take(1000, kBegin);
  for (int i = 1; i <= 50'000; ++i) bytes.left(kBegin + milliseconds(i));
  EXPECT_EQ(bytes.left(kBegin + seconds(50)), 500);
}

}  // namespace
}  // namespace espy
