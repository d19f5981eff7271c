// The memory in which a thread keeps records of spans until the tree that they belong to is shown or dropped.
//
// A buffer is an element of the array `span_buffers`: a header, the data, and slack for the longest record. The data is
// a ring of records (RecordHeader) that one thread writes. Where the rest of the ring is too short for a record, the
// rest is left, marked by a zero word, and the record begins at the start of the ring. `sequence` of a record is the
// position of the one before it.
//
// Which thread has which buffer is in `span_owners`, one value: counters, then a word for each buffer with the task
// that owns it, 0 if it is free. The words are a hash table: a task owns one of the eight words of either of two
// buckets.
#pragma once

#include <cstdint>
#include <string_view>

namespace espy::program {

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
