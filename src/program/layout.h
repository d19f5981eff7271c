// Memory that programs and espy share: values, the ring of records, the spans of threads.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "types/parts.h"

namespace espy::program {

// ---- The layout of composite values in maps and records, which `lower` writes and `output` reads. All words are
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
// exchanges the stamp for kRecentBusy, writes the value, and stores the new stamp. The stamp is number + 1 in a map
// with keys. In a map without keys it is the monotonic time, by which CPUs are merged. A stamp of 0 means an empty
// slot. So a value is complete in a copy if its stamp was copied before it, and is unchanged afterwards. With keys,
// `taken` may also not exceed number + slots. A copy in a record has `taken` as it was afterwards.
constexpr uint64_t kRecentBusy = UINT64_MAX;

constexpr uint64_t kExtremeBusy = 2;           // of min and max: the first value is being stored
constexpr uint64_t kTseriesBusy = UINT64_MAX;  // the epoch of a slot whose first value is being stored

struct TseriesSlot {
  uint64_t epoch;  // nanoseconds since 1970 / interval; 0: empty
  int64_t value;   // last, sum, min or max; for avg the sum
  uint64_t count;  // of values; of last the time of the value, in nanoseconds since 1970
};

// ---- The ring buffer for records from programs to user space.
//
// The kernel's ring buffer costs 30 ns per record on one CPU and 600 ns under contention. This one costs an atomic
// compare-and-exchange and plain stores. It is an mmapable array with one value per CPU:
//
//   byte 0      head   u64, total bytes reserved on this CPU; advanced by programs with atomic_cmpxchg
//   byte 64     tail   u64, total bytes consumed; advanced by user space
//   byte 128    lost   u64, records dropped since the ring was full; atomic_add
//   byte 192    guard  u64, runs of programs that are about to move head, on kernels without compare-and-exchange
//   a page      data   ring_bytes (a power of two), then slack for the longest record, so that no record wraps
//
// To reserve, a program reads head and tail. If head + size - tail > ring_bytes, it increments `lost` and drops the
// record; else it exchanges head for head + size. The exchange fails if an interrupt reserves in between, and is
// retried up to four times. The record is at data + (head & (ring_bytes - 1)). The program fills it and stores
// `event_plus_one` last, with release order. The consumer takes records while `event_plus_one` is not 0, zeroes them
// and advances tail; so a reserved record reads as 0 until it is complete. There is no wake-up: the consumer polls
// every millisecond while records arrive, backing off to 10 ms.
//
// Records of several CPUs are merged by `sequence`, which each record takes from one counter after its reservation.
//
// Kernels before 5.12 have no atomic operation but add, and their programs cannot be preempted. There, a program moves
// the head by a plain store, after it has incremented `guard`. If guard is then above 1, it has interrupted another
// program that is about to move the head, and its exchange has failed. The sequence is the time then.

constexpr uint32_t kRingHeadOffset = 0;
constexpr uint32_t kRingTailOffset = 64;
constexpr uint32_t kRingLostOffset = 128;
constexpr uint32_t kRingGuardOffset = 192;
constexpr uint32_t kMaxRecordBytes = 80 * 1024;

// The initially mapped part of a ring's data, if no record is longer than kMaxRecordBytes; the rest is mapped when
// records reach it. Most scripts print little, and mapped pages are resident.
constexpr uint32_t kRingFirstDataBytes = 256 * 1024;

// Data and values are mapped separately, so they begin at pages of the kernel.
constexpr uint32_t ring_data_offset(uint32_t page_size_bytes) { return page_size_bytes; }

// ---- The memory in which a thread keeps records of spans until the tree that they belong to is shown or dropped.
//
// A buffer is an element of the array `span_buffers`: a header, the data, and slack for the longest record. The data is
// a ring of records (RecordHeader) that one thread writes. If the rest of the ring is too short for a record, a zero
// word marks the rest, and the record begins at the start of the ring. `sequence` of a record is the position of the
// one before it.
//
// Which thread has which buffer is in `span_owners`, one value: counters, then a word for each buffer with the task
// that owns it, 0 if it is free. The words are a hash table: a task owns one of the eight words of either of two
// buckets.

constexpr std::string_view kSpanBuffersMap = "span_buffers", kSpanOwnersMap = "span_owners";

// Offsets in a buffer. Positions count the bytes ever written.
constexpr int64_t kSpanHead = 0;         // u64: position after the last record
constexpr int64_t kSpanBegin = 8;        // u64: position of the tree's first record
constexpr int64_t kSpanLast = 16;        // u64: position of the last record; kNoSpanRecord: there is none
constexpr int64_t kSpanLastBefore = 24;  // u64: the same when the tree began
constexpr int64_t kSpanDepth = 32;       // u64: calls of the root in progress; 0: there is no tree
constexpr int64_t kSpanFrame = 40;       // u64: of the root; 0: unknown
constexpr int64_t kSpanSkipped = 48;     // u64: calls in progress that did not fit
constexpr int64_t kSpanLeftOut = 56;     // u64: events of the tree that did not fit
constexpr int64_t kSpanNow = 64;         // u64: scratch
constexpr int64_t kSpanIndex = 72;       // u64: of the buffer in the array
constexpr int64_t kSpanLength = 252;     // u32: of the data, written before it is copied into a record
constexpr uint32_t kSpanHeaderBytes = 256;
constexpr int64_t kNoSpanRecord = -1;

// Offsets in `span_owners`, u64 each.
constexpr uint32_t kTreesBegun = 0;
constexpr uint32_t kTreesShown = 8;
constexpr uint32_t kTreesDropped = 16;
constexpr uint32_t kTreesLeft = 24;  // whose root did not return
constexpr uint32_t kSpanOwners = 64;
constexpr uint32_t kSpanBucketWords = 8;

}  // namespace espy::program
