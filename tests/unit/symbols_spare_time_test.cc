#include <gtest/gtest.h>

#include "symbols/debug_info.h"

namespace espy::symbols {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kLargeBytes = 1 << 30;
bool before_the_end() { return false; }
bool at_the_end() { return true; }

constexpr TimeBudget::Moment kBegin{std::chrono::hours(1)};

TEST(SpareTime, TheSizeOfAFileExplainsItsTime) {
  SpareTime spare;
  DebugTime time(spare, before_the_end);
  time.take(seconds(60), kLargeBytes, kBegin);
  EXPECT_EQ(spare.budget.left(kBegin), seconds(1));
  EXPECT_GT(time.left(kLargeBytes, kBegin), seconds(1));
}

TEST(SpareTime, SmallFilesShareASecond) {
  SpareTime spare;
  DebugTime first(spare, before_the_end), second(spare, before_the_end);
  EXPECT_GT(first.left(0, kBegin), seconds(1));
  first.take(milliseconds(700), 0, kBegin);
  EXPECT_LT(first.left(0, kBegin), milliseconds(310));
  EXPECT_LT(second.left(0, kBegin), milliseconds(310));
  second.take(milliseconds(400), 0, kBegin);
  EXPECT_LE(first.left(0, kBegin), milliseconds(0));
  EXPECT_LE(second.left(0, kBegin), milliseconds(0));
  DebugTime large(spare, before_the_end);
  EXPECT_GT(large.left(kLargeBytes, kBegin), seconds(60));
}

// What a file has taken of the spare time is not taken again.
TEST(SpareTime, IsTakenOnce) {
  SpareTime spare;
  DebugTime time(spare, before_the_end);
  for (int i = 0; i < 5; ++i) time.take(milliseconds(100), 0, kBegin);
  EXPECT_GT(spare.budget.left(kBegin), milliseconds(499));
  EXPECT_LT(spare.budget.left(kBegin), milliseconds(503));
}

TEST(SpareTime, TheEndDoesNotWaitForAll) {
  SpareTime spare;
  DebugTime first(spare, at_the_end), second(spare, at_the_end);
  EXPECT_EQ(first.left(kLargeBytes, kBegin), seconds(5));
  first.take(seconds(4), kLargeBytes, kBegin);
  EXPECT_EQ(second.left(kLargeBytes, kBegin), seconds(1));
  second.take(seconds(1), kLargeBytes, kBegin);
  EXPECT_EQ(second.left(kLargeBytes, kBegin), seconds(0));
}

}  // namespace
}  // namespace espy::symbols
