// The event ring: how records go from programs to user space.
//
// The kernel's ring buffer costs 30 ns a record on one CPU and 600 under contention. Ours costs an atomic
// compare-and-exchange and plain stores: it is an mmapable array with a value per CPU,
//
//   byte 0      head   u64, bytes ever reserved on this CPU; moved by programs with atomic_cmpxchg
//   byte 64     tail   u64, bytes ever consumed; moved by user space
//   byte 128    lost   u64, records that found no room; atomic_add
//   byte 4096   data   ring_bytes (a power of two), then kSlackBytes so that a record never wraps
//
// A program reserves: reads head and tail; if head + size - tail > ring_bytes, adds one to `lost` and gives up; else
// exchanges head for head + size. An interrupt may come between, and reserve for itself: the exchange then fails, and
// is tried anew up to four times. The record lies at data + (head & (ring_bytes - 1)). The program fills it, and writes
// `event_plus_one` last with release order. The consumer takes records while `event_plus_one` is not 0, zeroes what it
// took, and moves tail: so a reserved record always reads 0 until it is complete. Nobody is woken: the consumer polls,
// each millisecond while there is work, backing off to 10 ms.
//
// Between CPUs, records are merged by `sequence`, which every record takes from one counter after its reservation.
#pragma once

#include <cstdint>

namespace espy::program {

constexpr uint32_t kRingHeadOffset = 0;
constexpr uint32_t kRingTailOffset = 64;
constexpr uint32_t kRingLostOffset = 128;
constexpr uint32_t kRingDataOffset = 4096;
constexpr uint32_t kMaxRecordBytes = 64 * 1024;  // a longer record is a compile-time error
constexpr uint32_t kSlackBytes = kMaxRecordBytes;

// A ring is mapped as far as this at first, and wholly when records come that far: most scripts print little, and a
// mapped page is a resident page.
constexpr uint32_t kRingFirstBytes = kRingDataOffset + 256 * 1024;

constexpr uint32_t ring_value_size(uint32_t ring_bytes) { return kRingDataOffset + ring_bytes + kSlackBytes; }

}  // namespace espy::program
