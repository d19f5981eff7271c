// The consumer's end of the ring, against a producer that does in plain code what programs do.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "program/layout.h"
#include "runtime/ring.h"

namespace espy::runtime {
namespace {

using program::RecordHeader;

constexpr uint32_t kRingBytes = 4096;
constexpr uint32_t kSlack = 256;
constexpr uint32_t kDataOffset = 16 * 1024;  // of a kernel with pages of that size

class Producer {
 public:
  explicit Producer(uint32_t cpus, uint32_t ring_bytes = kRingBytes)
      : ring_bytes_(ring_bytes),
        value_size_(kDataOffset + ring_bytes + kSlack),
        words_(size_t{value_size_} * cpus / 8) {}

  std::span<std::byte> memory() { return {reinterpret_cast<std::byte*>(words_.data()), words_.size() * 8}; }
  Ring ring(std::function<void(uint32_t)> map_whole = {}) {
    return {memory(), value_size_, ring_bytes_, kDataOffset, std::move(map_whole)};
  }

  // Reserves; nothing where there is no room. The record is all ones, but not complete.
  RecordHeader* reserve(uint32_t cpu, uint32_t size_bytes) {
    uint64_t& head = word(cpu, program::kRingHeadOffset);
    if (head + size_bytes - word(cpu, program::kRingTailOffset) > ring_bytes_) {
      ++word(cpu, program::kRingLostOffset);
      return nullptr;
    }
    std::byte* at = base(cpu) + kDataOffset + (head & (ring_bytes_ - 1));
    head += size_bytes;
    for (uint32_t i = 0; i < size_bytes; ++i) EXPECT_EQ(at[i], std::byte{0}) << "byte " << i << " was not cleared";
    std::memset(at, 0xff, size_bytes);
    auto* header = reinterpret_cast<RecordHeader*>(at);
    *header = {0, size_bytes, sequence_++};
    return header;
  }
  uint64_t emit(uint32_t cpu, uint32_t size_bytes) {
    RecordHeader* header = reserve(cpu, size_bytes);
    if (header == nullptr) return UINT64_MAX;
    header->event_plus_one = 1;
    return header->sequence;
  }
  uint64_t& word(uint32_t cpu, uint32_t offset) { return *reinterpret_cast<uint64_t*>(base(cpu) + offset); }

 private:
  std::byte* base(uint32_t cpu) { return memory().data() + size_t{value_size_} * cpu; }

  uint32_t ring_bytes_, value_size_;
  std::vector<uint64_t> words_;
  uint64_t sequence_ = 0;
};

std::vector<uint64_t> drained(Ring& ring, size_t limit = SIZE_MAX, uint64_t end = UINT64_MAX) {
  std::vector<uint64_t> out;
  const size_t count = ring.drain(
      [&](std::span<const std::byte> record) {
        const auto* header = reinterpret_cast<const RecordHeader*>(record.data());
        EXPECT_EQ(header->size_bytes, record.size());
        out.push_back(header->sequence);
        return true;
      },
      limit, end);
  EXPECT_EQ(count, out.size());
  return out;
}

using Sequences = std::vector<uint64_t>;

TEST(Ring, IsEmptyWithoutMemory) {
  Ring ring({}, 0, 0, 0);
  EXPECT_EQ(drained(ring), Sequences{});
  EXPECT_EQ(ring.lost(), 0u);
}

TEST(Ring, MergesCpusBySequence) {
  Producer producer(3);
  Ring ring = producer.ring();
  for (const uint32_t cpu : {0, 1, 1, 2, 0, 0, 2, 1}) producer.emit(cpu, 32);
  EXPECT_EQ(drained(ring), (Sequences{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(drained(ring), Sequences{});
  EXPECT_EQ(producer.word(1, program::kRingTailOffset), 96u);
}

TEST(Ring, KnowsOfRecordsThatAreNotFinished) {
  Producer producer(2);
  Ring ring = producer.ring();
  EXPECT_EQ(ring.unfinished_cpus(), 0u);
  RecordHeader* held = producer.reserve(0, 32);
  producer.emit(0, 32);
  producer.emit(1, 32);
  EXPECT_EQ(drained(ring), Sequences{2});
  EXPECT_EQ(ring.unfinished_cpus(), 1u);
  held->event_plus_one = 1;
  EXPECT_EQ(drained(ring), (Sequences{0, 1}));
  EXPECT_EQ(ring.unfinished_cpus(), 0u);
}

// Where the ring ends that is mapped at first, a record may begin that reaches over it.
TEST(Ring, IsMappedWhollyBeforeItIsReadBeyondItsFirstBytes) {
  constexpr uint32_t kLarge = 1024 * 1024;
  constexpr uint64_t kFirst = program::kRingFirstDataBytes;
  Producer producer(2, kLarge);
  std::vector<uint32_t> mapped;
  Ring ring = producer.ring([&](uint32_t cpu) { mapped.push_back(cpu); });
  uint64_t written = 0;
  for (; written + 4096 + program::kMaxRecordBytes < kFirst; written += 4096) producer.emit(1, 4096);
  drained(ring);
  EXPECT_EQ(mapped, std::vector<uint32_t>{});
  for (; written + 4096 <= kFirst; written += 4096) producer.emit(1, 4096);
  drained(ring);
  EXPECT_EQ(mapped, std::vector<uint32_t>{1});
  for (int i = 0; i < 100; ++i) producer.emit(1, 4096);
  EXPECT_EQ(drained(ring).size(), 100u);
  EXPECT_EQ(mapped, std::vector<uint32_t>{1});
}

TEST(Ring, PassesOverCpusThatStillWrite) {
  Producer producer(2);
  Ring ring = producer.ring();
  RecordHeader* open = producer.reserve(0, 24);
  producer.emit(0, 24);
  producer.emit(1, 24);
  EXPECT_EQ(drained(ring), Sequences{2});
  open->event_plus_one = 1;
  EXPECT_EQ(drained(ring), (Sequences{0, 1}));
}

// An interrupt reserved behind the record it interrupted, but took its sequence before it.
TEST(Ring, HandsOutWhatAnInterruptTurnedRound) {
  Producer producer(2);
  Ring ring = producer.ring();
  RecordHeader* first = producer.reserve(0, 24);
  RecordHeader* second = producer.reserve(0, 24);
  std::swap(first->sequence, second->sequence);
  first->event_plus_one = second->event_plus_one = 1;
  EXPECT_EQ(drained(ring), (Sequences{1, 0}));
}

TEST(Ring, StopsNearTheLimitAndGoesOn) {
  Producer producer(2, 1 << 20);
  Ring ring = producer.ring();
  Sequences all;
  for (uint32_t i = 0; i < 10000; ++i) all.push_back(producer.emit(i / 3000 % 2, 48));
  Sequences got = drained(ring, 100);
  EXPECT_GE(got.size(), 100u);
  EXPECT_LT(got.size(), all.size());
  for (const uint64_t sequence : drained(ring)) got.push_back(sequence);
  EXPECT_EQ(got, all);
}

TEST(Ring, StopsWhereTheVisitorSaysAndGoesOn) {
  Producer producer(3);
  Ring ring = producer.ring();
  Sequences all, got;
  for (uint32_t i = 0; i < 30; ++i) all.push_back(producer.emit(i % 3, 32));
  while (got.size() < all.size()) {
    const auto visit = [&](std::span<const std::byte> record) {
      got.push_back(reinterpret_cast<const RecordHeader*>(record.data())->sequence);
      return got.size() % 4 != 0;
    };
    const size_t count = ring.drain(visit, SIZE_MAX);
    ASSERT_EQ(count, got.size() % 4 == 0 ? 4u : 2u);
  }
  EXPECT_EQ(got, all);
  EXPECT_EQ(drained(ring), Sequences{});
}

TEST(Ring, StopsBeforeASequence) {
  Producer producer(2);
  Ring ring = producer.ring();
  for (uint32_t i = 0; i < 6; ++i) producer.emit(i % 2, 32);
  EXPECT_EQ(drained(ring, SIZE_MAX, 0), Sequences{});
  EXPECT_EQ(drained(ring, SIZE_MAX, 4), (Sequences{0, 1, 2, 3}));
  EXPECT_EQ(drained(ring, SIZE_MAX, 4), Sequences{});
  EXPECT_EQ(drained(ring), (Sequences{4, 5}));
}

TEST(Ring, CountsWhatFoundNoRoom) {
  Producer producer(2);
  Ring ring = producer.ring();
  for (uint32_t i = 0; i < 2 * kRingBytes / 64 + 3; ++i) producer.emit(i % 2, 64);
  EXPECT_EQ(ring.lost(), 3u);
  EXPECT_EQ(drained(ring).size(), 2 * kRingBytes / 64);
  EXPECT_NE(producer.emit(0, 64), UINT64_MAX);
}

// Records of all sizes, over the end of the ring again and again: each comes once, in order, and room is cleared.
TEST(Ring, GoesRoundAndRound) {
  constexpr uint32_t kCpus = 3;
  Producer producer(kCpus);
  Ring ring = producer.ring();
  std::mt19937 random(7);
  Sequences expected, got;
  for (int round = 0; round < 3000; ++round) {
    for (uint32_t i = random() % 40; i > 0; --i) {
      const uint64_t sequence = producer.emit(random() % kCpus, 16 + random() % 30 * 8);
      if (sequence != UINT64_MAX) expected.push_back(sequence);
    }
    for (const uint64_t sequence : drained(ring, random() % 3 == 0 ? 1 : SIZE_MAX)) got.push_back(sequence);
  }
  for (const uint64_t sequence : drained(ring)) got.push_back(sequence);
  EXPECT_EQ(got, expected);
  EXPECT_GT(got.size(), 30000u);
}

}  // namespace
}  // namespace espy::runtime
