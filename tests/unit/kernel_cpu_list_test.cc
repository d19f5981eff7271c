#include <gtest/gtest.h>

#include "kernel/cpu_list.h"

namespace espy::kernel {
namespace {

TEST(CpuList, CountsUpToTheHighestNumber) {
  EXPECT_EQ(parse_cpu_count("0\n"), 1u);
  EXPECT_EQ(parse_cpu_count("0-7\n"), 8u);
  EXPECT_EQ(parse_cpu_count("0,2-7"), 8u);
  EXPECT_EQ(parse_cpu_count("0-3,16-127,255\n"), 256u);
}

TEST(CpuList, RefusesOtherText) {
  for (const char* text : {"", "\n", "all", "0-", "0,", "0-99999999999", "0--5"})
    EXPECT_EQ(parse_cpu_count(text), std::nullopt) << text;
}

TEST(CpuList, OfThisMachine) {
  EXPECT_GE(possible_cpu_count().value_or(0), 1u);
  EXPECT_EQ(possible_cpu_count("/nonexistent"), std::nullopt);
}

}  // namespace
}  // namespace espy::kernel
