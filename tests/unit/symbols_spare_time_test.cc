#include <gtest/gtest.h>

#include "symbols/spare_time.h"

namespace espy::symbols {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kLargeBytes = 1 << 30;
constexpr SpareTime::Moment kBegin{std::chrono::hours(1)};

TEST(SpareTime, TheSizeOfAFileExplainsItsTime) {
  SpareTime spare;
  DebugTime time(spare);
  time.take(seconds(60), kLargeBytes, kBegin);
  EXPECT_EQ(spare.left(kBegin), seconds(1));
  EXPECT_GT(time.left(kLargeBytes, kBegin), seconds(1));
}

TEST(SpareTime, SmallFilesShareASecond) {
  SpareTime spare;
  DebugTime first(spare), second(spare);
  EXPECT_GT(first.left(0, kBegin), seconds(1));
  first.take(milliseconds(700), 0, kBegin);
  EXPECT_LT(first.left(0, kBegin), milliseconds(310));
  EXPECT_LT(second.left(0, kBegin), milliseconds(310));
  second.take(milliseconds(400), 0, kBegin);
  EXPECT_LE(first.left(0, kBegin), milliseconds(0));
  EXPECT_LE(second.left(0, kBegin), milliseconds(0));
  DebugTime large(spare);
  EXPECT_GT(large.left(kLargeBytes, kBegin), seconds(60));
}

// What a file has taken of the spare time is not taken again.
TEST(SpareTime, IsTakenOnce) {
  SpareTime spare;
  DebugTime time(spare);
  for (int i = 0; i < 5; ++i) time.take(milliseconds(100), 0, kBegin);
  EXPECT_GT(spare.left(kBegin), milliseconds(499));
  EXPECT_LT(spare.left(kBegin), milliseconds(503));
}

TEST(SpareTime, GrowsWithTimeUpToASecond) {
  SpareTime spare;
  spare.take(seconds(2), kBegin);
  EXPECT_EQ(spare.left(kBegin), seconds(-1));
  EXPECT_EQ(spare.left(kBegin + seconds(5)), milliseconds(-500));
  EXPECT_EQ(spare.left(kBegin + seconds(100)), seconds(1));
}

}  // namespace
}  // namespace espy::symbols
