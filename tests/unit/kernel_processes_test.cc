#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "kernel/processes.h"

namespace espy::kernel {
namespace {

TEST(Processes, TimeIsFoundBehindAnyName) {
  const auto time = parse_process_time(
      "17 (a) R 1) S 1 17 17 0 -1 4194560 1 2 3 4 500 60 7 8 20 0 1 0 12345 9000000 300 18446744073709551615 1 1");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->cpu_ticks, 560U);
  EXPECT_EQ(time->start_ticks, 12345U);
}

TEST(Processes, ThreadsOfTheKernelAndBrokenTextAreNone) {
  EXPECT_FALSE(parse_process_time("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0 1 0 0 0"));
  EXPECT_FALSE(parse_process_time(""));
  EXPECT_FALSE(parse_process_time("1 (x"));
  EXPECT_FALSE(parse_process_time("1 (x) S 1 2"));
}

TEST(Processes, TheOwnProcessIsAmongThem) {
  const auto pids = busiest_processes([] { return false; });
  EXPECT_NE(std::ranges::find(pids, static_cast<uint32_t>(::getpid())), pids.end());
}

TEST(Processes, ThoseThatWereNotLookedAtFollow) {
  const auto pids = busiest_processes([] { return true; });
  EXPECT_NE(std::ranges::find(pids, static_cast<uint32_t>(::getpid())), pids.end());
  EXPECT_TRUE(std::ranges::is_sorted(pids, std::greater()));
}

TEST(Processes, SchedulingTimesOfThreadsAreAdded) {
  SchedulingTimes sum;
  EXPECT_TRUE(add_scheduling_times("100 20 3\n", sum));
  EXPECT_TRUE(add_scheduling_times("1 2 3\n", sum));
  EXPECT_EQ(sum.run_ns, 101U);
  EXPECT_EQ(sum.wait_ns, 22U);
  EXPECT_FALSE(add_scheduling_times("", sum));
  EXPECT_FALSE(add_scheduling_times("100", sum));
  EXPECT_FALSE(add_scheduling_times("100 -1 3", sum));
  EXPECT_EQ(sum.run_ns, 101U);
}

TEST(Processes, TheOwnCpuTimeGrows) {
  const auto pid = static_cast<uint32_t>(::getpid());
  const auto before = process_cpu_ns(pid);
  ASSERT_TRUE(before);
  while (process_cpu_ns(pid) == before) {
  }
  EXPECT_GT(*process_cpu_ns(pid), *before);
  EXPECT_FALSE(process_cpu_ns(5'000'000));  // above the largest id of a process
}

}  // namespace
}  // namespace espy::kernel
