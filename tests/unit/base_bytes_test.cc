#include <gtest/gtest.h>

#include "base/bytes.h"

namespace espy {
namespace {

TEST(NumberIn, TakesTheLowestByteFirst) {
  EXPECT_EQ(number_in("\x01\x02\x03\x04\x05\x06\x07\x08\x09"), 0x0807060504030201u);
  EXPECT_EQ(number_in("\x01\x02\x03", 1, 2), 0x0302u);
}

TEST(NumberIn, WhatIsBehindTheEndIsZero) {
  EXPECT_EQ(number_in("\x01\x02", 1, 4), 0x02u);
  EXPECT_EQ(number_in("\x01\x02", 2), 0u);
  EXPECT_EQ(number_in("\x01\x02", UINT64_MAX), 0u);
}

TEST(NumberIn, OfMoreThanEightBytesTheFirstCount) {
  EXPECT_EQ(number_in("\x01\x02\x03\x04\x05\x06\x07\x08\x09", 0, 16), 0x0807060504030201u);
}

}  // namespace
}  // namespace espy
