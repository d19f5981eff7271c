// The layout of composite values in maps and records, which `lower` writes and `output` reads. All words are
// native-endian. Per-CPU values are initially zero on every CPU.
//
//   count      u64
//   sum        i64 or u64
//   min, max   i64 or u64 value, u64 set (1; 0 until the first value, kExtremeBusy while it is stored)
//   avg,stats  i64 or u64 total, u64 count
//   hist       u64 buckets[hist_bucket_count(bits)]
//   lhist      u64 buckets[lhist_bucket_count(...)]: below min, steps, max and above
//   tseries    TseriesSlot slots[intervals]; the slot of an epoch is epoch % intervals
//   recent     u64 taken, u64 stamps[slots], values[slots] (types::RecentLayout); in a map with keys one for all CPUs
//   string     `capacity` bytes, NUL-padded
//   buffer     u32 length, bytes
//   stack      kernel: i64 reference; user: i64 reference, u32 pid, u32 frames. A reference is a negative errno; or
//              an id in the STACK_TRACE map of the shape, with the number of frames in its high 32 bits if the script
//              uses it; or, if `frames` is not 0, a key in the map of unwound stacks of the shape
//   usym       u64 address, u32 pid, u32 0
//   inet       u32 family (AF_INET, AF_INET6), 16 bytes
//   mac        6 bytes
//   timestamp  u64 nanoseconds, u32 index into Program::formats, u32 clock
//   others     as their C type
#pragma once

#include <bit>
#include <cstdint>

#include "types/recent_layout.h"

namespace espy::program {

// Buckets of hist(n, bits). Index 0 counts negative values, index 1 zeros. Values below 2^bits have a bucket each;
// above, each power of two is split into 2^bits equal parts. With bits 0: index 2 is [1], index 3 is [2,4), index 4 is
// [4,8).
constexpr uint32_t hist_bucket_count(uint8_t bits) { return 1 + ((64 - bits + 1) << bits); }

constexpr uint32_t hist_bucket(int64_t value, uint8_t bits) {
  if (value < 0) return 0;
  const auto n = static_cast<uint64_t>(value);
  if (n < (uint64_t{1} << bits)) return 1 + static_cast<uint32_t>(n);
  const auto log2 = static_cast<uint32_t>(63 - std::countl_zero(n));
  const uint32_t shift = log2 - bits;
  return 1 + ((shift + 1) << bits) + static_cast<uint32_t>((n >> shift) - (uint64_t{1} << bits));
}

// Returns the smallest value of a bucket. Requires index >= 1.
constexpr uint64_t hist_bucket_start(uint32_t index, uint8_t bits) {
  const uint32_t i = index - 1;
  if (i < (uint32_t{1} << bits)) return i;
  const uint32_t shift = (i >> bits) - 1;
  return ((uint64_t{1} << bits) + (i & ((uint32_t{1} << bits) - 1))) << shift;
}

static_assert(hist_bucket(-3, 0) == 0 && hist_bucket(0, 0) == 1 && hist_bucket(1, 0) == 2 && hist_bucket(9, 0) == 5);
static_assert(hist_bucket_start(5, 0) == 8 && hist_bucket_start(hist_bucket(100, 2), 2) == 96);
static_assert(hist_bucket(INT64_MAX, 0) < hist_bucket_count(0) && hist_bucket(INT64_MAX, 5) < hist_bucket_count(5));

constexpr uint64_t lhist_bucket_count(int64_t min, int64_t max, int64_t step) {
  const uint64_t range = static_cast<uint64_t>(max) - static_cast<uint64_t>(min);
  return (range - 1) / static_cast<uint64_t>(step) + 3;
}

// A recent() in a map. A program takes the number `taken`, which it increments; the value's slot is number % slots. It
// exchanges the stamp for kRecentBusy, writes the value, and stores the new stamp: number + 1 in a map with keys, the
// monotonic time in one without, whose CPUs are merged by it. A stamp of 0 is that of an empty slot. So a value is
// complete in a copy if its stamp was copied before it, and afterwards either is the same still or, with keys, `taken`
// does not exceed number + slots. A copy in a record has `taken` as it was afterwards.
constexpr uint64_t kRecentBusy = UINT64_MAX;

constexpr uint64_t kExtremeBusy = 2;           // of min and max: the first value is being stored
constexpr uint64_t kTseriesBusy = UINT64_MAX;  // the epoch of a slot whose first value is being stored

struct TseriesSlot {
  uint64_t epoch;  // nanoseconds since 1970 / interval; 0: empty
  int64_t value;   // last, sum, min or max; for avg the sum
  uint64_t count;  // of values; of last the time of the value, in nanoseconds since 1970
};

}  // namespace espy::program
