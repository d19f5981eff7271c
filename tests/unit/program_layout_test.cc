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
