// Records are drained in batches. A scan over all CPUs finds the complete records of each, up to a few pages; these are
// merged, visited, cleared and released together. So head and tail move between CPU caches once a batch, not once a
// record, and idle CPUs are scanned once a batch.
//
// A scan has two rounds. While the first one is at a CPU, a CPU that it has passed may complete a record that is older
// than those found now. The second round finds it: it takes all records up to the highest sequence of the first.
#include "runtime/ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/fatal.h"
#include "program/layout.h"

namespace espy::runtime {

namespace {

constexpr uint64_t kBatchBytes = 64 * 1024;  // of one CPU: fits the cache, and is a small part of a ring

std::atomic_ref<uint64_t> word(std::byte* base, uint32_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(base + offset));
}

}  // namespace

Ring::Ring(std::span<std::byte> memory, uint32_t value_size, uint32_t ring_bytes, uint32_t data_offset,
           std::function<void(uint32_t cpu)> map_whole)
    : ring_bytes_(ring_bytes), data_offset_(data_offset), map_whole_(std::move(map_whole)) {
  if (memory.empty()) return;
  slack_bytes_ = value_size - data_offset - ring_bytes;
  const size_t stride = (size_t{value_size} + 7) & ~size_t{7};
  for (size_t at = 0; at + value_size <= memory.size(); at += stride) {
    std::byte* base = memory.data() + at;
    const uint64_t tail = word(base, program::kRingTailOffset).load(std::memory_order_relaxed);
    cpus_.push_back({base, tail, tail, tail, 0, !map_whole_});
  }
}

program::RecordHeader* Ring::record_at(const Cpu& cpu, uint64_t position) const {
  std::byte* at = cpu.base + data_offset_ + (position & (ring_bytes_ - 1));
  return reinterpret_cast<program::RecordHeader*>(at);
}

// Returns the record at `position`; null if it is not complete.
const program::RecordHeader* Ring::complete_at(const Cpu& cpu, uint64_t position) const {
  if (position - cpu.tail >= ring_bytes_)
    return nullptr;  // the whole ring is complete; the next record would be its first
  program::RecordHeader* record = record_at(cpu, position);
  if (std::atomic_ref<uint32_t>(record->event_plus_one).load(std::memory_order_acquire) == 0) return nullptr;
  CHECK(record->size_bytes >= sizeof(*record) && record->size_bytes <= ring_bytes_);
  return record;
}

// Moves `ready` over complete records, up to a batch, but not over a sequence above `newest`.
void Ring::scan(Cpu& cpu, uint64_t newest) {
  constexpr uint64_t kFirstPositions = program::kRingFirstDataBytes - program::kMaxRecordBytes;
  while (!is_full(cpu)) {
    if (!cpu.is_whole && cpu.ready >= kFirstPositions) {
      map_whole_(static_cast<uint32_t>(&cpu - cpus_.data()));
      cpu.is_whole = true;
    }
    const program::RecordHeader* record = complete_at(cpu, cpu.ready);
    if (record == nullptr || record->sequence > newest) break;
    cpu.ready += record->size_bytes;
    // The maximum: an interrupt between a record's reservation and its sequence gets a later position, but a lower
    // sequence.
    cpu.newest = std::max(cpu.newest, record->sequence);
  }
}

bool Ring::is_full(const Cpu& cpu) { return cpu.ready - cpu.tail >= kBatchBytes; }

// Scans all CPUs; returns the sequence up to which the records may be visited.
uint64_t Ring::scan() {
  uint64_t newest = 0;
  for (Cpu& cpu : cpus_) {
    scan(cpu, UINT64_MAX);
    if (cpu.ready != cpu.next) newest = std::max(newest, cpu.newest);
  }
  if (cpus_.size() > 1)
    for (Cpu& cpu : cpus_) scan(cpu, newest);
  // Behind a full batch there may be records that are older than those of other CPUs.
  for (const Cpu& cpu : cpus_)
    if (is_full(cpu)) newest = std::min(newest, cpu.newest);
  return newest;
}

// Visits records of the CPU that has the oldest one, until another CPU has an older one.
Ring::Visited Ring::visit_up_to(uint64_t newest, const Visit& visit) {
  Visited visited;
  while (true) {
    Cpu* oldest = nullptr;
    uint64_t sequence = UINT64_MAX, until = newest;
    for (Cpu& cpu : cpus_) {
      if (cpu.next == cpu.ready) continue;
      const uint64_t its = record_at(cpu, cpu.next)->sequence;
      if (its < sequence) {
        until = std::min(until, sequence);
        sequence = its;
        oldest = &cpu;
      } else {
        until = std::min(until, its);
      }
    }
    if (oldest == nullptr || sequence > newest) return visited;
    do {
      const program::RecordHeader* record = record_at(*oldest, oldest->next);
      visited.is_stopped = !visit({reinterpret_cast<const std::byte*>(record), record->size_bytes});
      oldest->next += record->size_bytes;
      ++visited.count;
      if (visited.is_stopped) return visited;
    } while (oldest->next != oldest->ready && record_at(*oldest, oldest->next)->sequence <= until);
  }
}

// Zeroes the visited records, which programs rely on when they reserve the space again. A record that begins at the end
// of the ring continues in the slack behind it.
void Ring::release(Cpu& cpu) const {
  if (cpu.next == cpu.tail) return;
  std::byte* data = cpu.base + data_offset_;
  const uint64_t begin = cpu.tail & (ring_bytes_ - 1), size = cpu.next - cpu.tail;
  if (begin + size <= ring_bytes_) {
    std::memset(data + begin, 0, size);
  } else {
    std::memset(data + begin, 0, ring_bytes_ - begin + slack_bytes_);
    std::memset(data, 0, begin + size - ring_bytes_);
  }
  cpu.tail = cpu.next;
  word(cpu.base, program::kRingTailOffset).store(cpu.tail, std::memory_order_release);
}

size_t Ring::drain(const Visit& visit, size_t limit, uint64_t end) {
  size_t count = 0;
  while (count < limit && end > 0) {
    const Visited batch = visit_up_to(std::min(scan(), end - 1), visit);
    for (Cpu& cpu : cpus_) release(cpu);
    count += batch.count;
    if (batch.count == 0 || batch.is_stopped) break;
  }
  return count;
}

uint32_t Ring::unfinished_cpus() const {
  const auto is_unfinished = [](const Cpu& cpu) {
    return word(cpu.base, program::kRingHeadOffset).load(std::memory_order_acquire) != cpu.next;
  };
  return static_cast<uint32_t>(std::ranges::count_if(cpus_, is_unfinished));
}

uint64_t Ring::lost() const {
  uint64_t total = 0;
  for (const Cpu& cpu : cpus_) total += word(cpu.base, program::kRingLostOffset).load(std::memory_order_relaxed);
  return total;
}

}  // namespace espy::runtime
