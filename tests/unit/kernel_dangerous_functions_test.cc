#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "kernel/functions.h"

namespace espy::kernel {
namespace {

TEST(DangerousFunctions, KnowsThoseOfLocks) {
  EXPECT_TRUE(why_dangerous("_raw_spin_lock", true).has_value());
  EXPECT_FALSE(why_dangerous("_raw_spin_lock", false).has_value());
  EXPECT_TRUE(why_dangerous("native_queued_spin_lock_slowpath", false).has_value());
  EXPECT_TRUE(why_dangerous("native_queued_spin_lock_slowpath", true).has_value());
  EXPECT_FALSE(why_dangerous("vfs_read", true).has_value());
}

TEST(DangerousFunctions, KnowsThoseThatNeverReturn) {
  EXPECT_TRUE(never_returns("do_exit"));
  EXPECT_TRUE(never_returns("__x64_sys_exit_group"));
  EXPECT_FALSE(never_returns("vfs_read"));
}

TEST(DangerousFunctions, LeavesSomeOutOfWildcardsThatDoNotNameThem) {
  EXPECT_TRUE(is_left_out_of_wildcard("rcu_read_lock", "*"));
  EXPECT_TRUE(is_left_out_of_wildcard("default_idle_call", "d*"));
  EXPECT_FALSE(is_left_out_of_wildcard("rcu_read_lock", "rcu_*"));
  EXPECT_FALSE(is_left_out_of_wildcard("vfs_read", "*"));
}

TEST(DangerousFunctions, ReadsTheListOfTheKernel) {
  char path[] = "/tmp/espy-blacklist-XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  const char text[] = "0xffffffff81000000-0xffffffff81000010\tdo_nmi\nno tab\n0x1-0x2\tentry_SYSCALL_64\n";
  ASSERT_EQ(::write(fd, text, sizeof(text) - 1), static_cast<ssize_t>(sizeof(text) - 1));
  ::close(fd);
  const auto list = read_kprobe_blacklist(path);
  ::unlink(path);
  EXPECT_EQ(list.size(), 2u);
  EXPECT_TRUE(list.contains("do_nmi"));
  EXPECT_TRUE(list.contains("entry_SYSCALL_64"));
  EXPECT_TRUE(read_kprobe_blacklist("/no/such/file").empty());
}

}  // namespace
}  // namespace espy::kernel
