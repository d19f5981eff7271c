// Draining works in batches. A look over all CPUs finds how many complete records each has, up to a few pages; these
// are merged, handed out, cleared and given back together. So the words that programs write and we read, or the other
// way round, cross between CPUs once a batch and not once a record, and a machine of many idle CPUs is not searched
// through for each.
//
// The look is two rounds. While the first is at one CPU, another that it has seen already may complete a record that
// comes before what is found now. The second round finds it: it takes what is there up to the newest sequence that the
// first has seen.
#include "runtime/ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "program/ring.h"

namespace espy::runtime {

namespace {

constexpr uint64_t kBatchBytes = 64 * 1024;  // of one CPU: fits the processor's cache, and is little of a ring

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

// The record there, or nullptr where none is complete.
const program::RecordHeader* Ring::complete_at(const Cpu& cpu, uint64_t position) const {
  if (position - cpu.tail >= ring_bytes_) return nullptr;  // all of the ring is: what follows is its beginning
  program::RecordHeader* record = record_at(cpu, position);
  if (std::atomic_ref<uint32_t>(record->event_plus_one).load(std::memory_order_acquire) == 0) return nullptr;
  CHECK(record->size_bytes >= sizeof(*record) && record->size_bytes <= ring_bytes_);
  return record;
}

// Up to a batch, and nothing that is newer than `newest`.
void Ring::look_ahead(Cpu& cpu, uint64_t newest) {
  constexpr uint64_t kFirstPositions = program::kRingFirstDataBytes - program::kMaxRecordBytes;
  while (!is_full(cpu)) {
    if (!cpu.is_whole && cpu.ready >= kFirstPositions) {
      map_whole_(static_cast<uint32_t>(&cpu - cpus_.data()));
      cpu.is_whole = true;
    }
    const program::RecordHeader* record = complete_at(cpu, cpu.ready);
    if (record == nullptr || record->sequence > newest) break;
    cpu.ready += record->size_bytes;
    // An interrupt's records may come before those that it interrupted, and be older.
    cpu.newest = std::max(cpu.newest, record->sequence);
  }
}

bool Ring::is_full(const Cpu& cpu) { return cpu.ready - cpu.tail >= kBatchBytes; }

// The sequence up to which all that is known may be handed out.
uint64_t Ring::look_ahead() {
  uint64_t newest = 0;
  for (Cpu& cpu : cpus_) {
    look_ahead(cpu, UINT64_MAX);
    if (cpu.ready != cpu.next) newest = std::max(newest, cpu.newest);
  }
  if (cpus_.size() > 1)
    for (Cpu& cpu : cpus_) look_ahead(cpu, newest);
  // Behind a full batch there may be more, older than what others have.
  for (const Cpu& cpu : cpus_)
    if (is_full(cpu)) newest = std::min(newest, cpu.newest);
  return newest;
}

// Merges: the CPU whose record is the oldest hands out until another one's is older.
size_t Ring::hand_out(uint64_t newest, const Visit& visit) {
  size_t count = 0;
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
    if (oldest == nullptr || sequence > newest) return count;
    do {
      const program::RecordHeader* record = record_at(*oldest, oldest->next);
      visit({reinterpret_cast<const std::byte*>(record), record->size_bytes});
      oldest->next += record->size_bytes;
      ++count;
    } while (oldest->next != oldest->ready && record_at(*oldest, oldest->next)->sequence <= until);
  }
}

// What was handed out must read as zeros before a program may reserve it anew. A record that begins at the end of the
// ring goes on behind it, in the slack.
void Ring::give_back(Cpu& cpu) const {
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

size_t Ring::drain(const Visit& visit, size_t limit) {
  size_t count = 0;
  while (count < limit) {
    const size_t batch = hand_out(look_ahead(), visit);
    if (batch == 0) break;
    for (Cpu& cpu : cpus_) give_back(cpu);
    count += batch;
  }
  return count;
}

uint64_t Ring::lost() const {
  uint64_t total = 0;
  for (const Cpu& cpu : cpus_) total += word(cpu.base, program::kRingLostOffset).load(std::memory_order_relaxed);
  return total;
}

}  // namespace espy::runtime
