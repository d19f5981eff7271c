// The ring buffer for records from programs to user space.
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
// the head by a plain store, after it has incremented `guard`; if guard is then above 1, it has interrupted another one
// that is about to move the head, and its exchange has failed. The sequence is the time then.
#pragma once

#include <cstdint>

namespace espy::program {

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

}  // namespace espy::program
