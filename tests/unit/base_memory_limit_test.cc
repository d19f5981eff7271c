#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "base/limits.h"

namespace espy {
namespace {

constexpr size_t kMuchBytes = 256 << 20;
constexpr size_t kLimitBytes = 64 << 20;

rlim_t soft_limit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_DATA, &limit);
  return limit.rlim_cur;
}

// Whether a block can be allocated. It is not touched.
bool can_allocate(size_t bytes) {
  void* volatile block = std::malloc(bytes);
  std::free(block);
  return block != nullptr;
}

TEST(MemoryLimit, AllocationsBeyondItFail) {
  if (!MemoryLimit::is_supported()) GTEST_SKIP() << "a sanitizer's allocator ends the process";
  const rlim_t before = soft_limit();
  {
    const MemoryLimit limit(kLimitBytes);
    EXPECT_FALSE(can_allocate(kMuchBytes));
    EXPECT_TRUE(can_allocate(kLimitBytes / 2));
    EXPECT_THROW(std::make_unique<char[]>(kMuchBytes), std::bad_alloc);
  }
  EXPECT_EQ(soft_limit(), before);
  EXPECT_TRUE(can_allocate(kMuchBytes));
}

TEST(MemoryLimit, TheLowerLimitHolds) {
  if (!MemoryLimit::is_supported()) GTEST_SKIP() << "a sanitizer's allocator ends the process";
  const MemoryLimit outer(kLimitBytes);
  {
    const MemoryLimit inner(2 * kMuchBytes);
    EXPECT_FALSE(can_allocate(kMuchBytes));
  }
  EXPECT_FALSE(can_allocate(kMuchBytes));
}

TEST(MemoryLimit, KnowsWhatIsTaken) {
  const MemoryLimit limit(2 * kMuchBytes);
  EXPECT_LT(limit.taken_bytes(), kLimitBytes);
  void* volatile taken = std::malloc(kLimitBytes);  // volatile: compilers leave out memory that nobody uses
  const std::unique_ptr<void, decltype(&std::free)> block(taken, &std::free);
  EXPECT_GE(limit.taken_bytes(), kLimitBytes);
}

}  // namespace
}  // namespace espy
