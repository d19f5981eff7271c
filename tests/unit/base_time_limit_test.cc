#include <gtest/gtest.h>

#include <chrono>

#include "base/limits.h"

namespace espy {
namespace {

using std::chrono::hours;

constexpr int kManyCalls = 1000;

void check_often() {
  for (int i = 0; i < kManyCalls; ++i) TimeLimit::check();
}

TEST(TimeLimit, MoreTimeThrows) {
  EXPECT_NO_THROW(check_often());
  const TimeLimit limit(TimeLimit::Duration(0));
  EXPECT_THROW(check_often(), TookTooLong);
}

TEST(TimeLimit, WorkUpToItDoesNot) {
  {
    const TimeLimit limit(hours(1));
    EXPECT_NO_THROW(check_often());
  }
  EXPECT_NO_THROW(check_often());
}

TEST(TimeLimit, TheSoonerEndCounts) {
  const TimeLimit outer(TimeLimit::Duration(0));
  {
    const TimeLimit inner(hours(1));
    EXPECT_THROW(check_often(), TookTooLong);
  }
  EXPECT_THROW(check_often(), TookTooLong);
}

TEST(TimeLimit, AnInnerOneEndsWithItsScope) {
  const TimeLimit outer(hours(1));
  {
    const TimeLimit inner(TimeLimit::Duration(0));
    EXPECT_THROW(check_often(), TookTooLong);
  }
  EXPECT_NO_THROW(check_often());
}

// The clock of the wall passes the limit, that of the thread does not.
TEST(TimeLimit, WaitingIsNotWork) {
  const TimeLimit limit(std::chrono::milliseconds(20));
  timespec wait = {0, 30'000'000};
  ::nanosleep(&wait, nullptr);
  EXPECT_NO_THROW(TimeLimit::check());
}

}  // namespace
}  // namespace espy
