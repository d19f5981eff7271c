// The types room states the sizes of aggregations, program/layout.h says how they are filled in: they must agree.
#include <gtest/gtest.h>

#include "program/layout.h"
#include "types/type.h"

namespace espy::program {
namespace {

TEST(Layout, HistogramsHaveTheSizeOfTheirBuckets) {
  types::Types types;
  for (uint8_t bits = 0; bits <= 5; ++bits) {
    EXPECT_EQ(types[types.hist(bits)].size_bytes, 8 * hist_bucket_count(bits)) << int{bits};
  }
}

// The examples of the language's description: negative values, zero, one, then powers of two.
TEST(Layout, HistogramBucketsAreWhereTheLanguageSays) {
  EXPECT_EQ(hist_bucket(INT64_MIN, 0), 0u);
  EXPECT_EQ(hist_bucket(-1, 0), 0u);
  EXPECT_EQ(hist_bucket(0, 0), 1u);
  EXPECT_EQ(hist_bucket(1, 0), 2u);
  EXPECT_EQ(hist_bucket(2, 0), hist_bucket(3, 0));
  EXPECT_EQ(hist_bucket(4, 0), hist_bucket(3, 0) + 1);
  EXPECT_EQ(hist_bucket(1024, 0), hist_bucket(2047, 0));
  EXPECT_NE(hist_bucket(1024, 0), hist_bucket(1023, 0));
}

TEST(Layout, EveryHistogramBucketStartsWithAValueOfItsOwn) {
  for (uint8_t bits = 0; bits <= 5; ++bits) {
    const uint32_t largest = hist_bucket(INT64_MAX, bits);
    ASSERT_LT(largest, hist_bucket_count(bits));
    for (uint32_t index = 1; index <= largest; ++index) {
      const uint64_t start = hist_bucket_start(index, bits);
      ASSERT_EQ(hist_bucket(static_cast<int64_t>(start), bits), index) << int{bits};
      if (index > 1) {
        ASSERT_EQ(hist_bucket(static_cast<int64_t>(start - 1), bits), index - 1) << int{bits};
      }
    }
  }
}

TEST(Layout, LinearHistogramsHaveTheSizeOfTheirBuckets) {
  types::Types types;
  EXPECT_EQ(types[types.lhist(0, 1000, 100)].size_bytes, 8 * lhist_bucket_count(0, 1000, 100));
  EXPECT_EQ(types[types.lhist(-10, 11, 4)].size_bytes, 8 * lhist_bucket_count(-10, 11, 4));
}

TEST(Layout, TimeSeriesHaveTheSizeOfTheirSlots) {
  types::Types types;
  EXPECT_EQ(types[types.tseries({.interval_ns = 1, .intervals = 7}, true)].size_bytes, 7 * sizeof(TseriesSlot));
}

}  // namespace
}  // namespace espy::program
