#include "runtime/ring.h"

#include <atomic>
#include <cstring>

#include "base/check.h"
#include "program/ring.h"

namespace espy::runtime {

namespace {

std::atomic_ref<uint64_t> word(std::byte* base, uint32_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(base + offset));
}

}  // namespace

Ring::Ring(std::span<std::byte> memory, uint32_t value_size, uint32_t ring_bytes) : ring_bytes_(ring_bytes) {
  if (memory.empty()) return;
  const size_t stride = (size_t{value_size} + 7) & ~size_t{7};
  for (size_t at = 0; at + value_size <= memory.size(); at += stride) {
    std::byte* base = memory.data() + at;
    cpus_.push_back({base, word(base, program::kRingTailOffset).load(std::memory_order_relaxed)});
  }
}

const program::RecordHeader* Ring::next(const Cpu& cpu) const {
  std::byte* at = cpu.base + program::kRingDataOffset + (cpu.tail & (ring_bytes_ - 1));
  auto* header = reinterpret_cast<program::RecordHeader*>(at);
  if (std::atomic_ref<uint32_t>(header->event_plus_one).load(std::memory_order_acquire) == 0) return nullptr;
  return header;
}

// What was taken must read as zeros before a program may reserve it anew.
void Ring::consume(Cpu& cpu, uint32_t size_bytes) {
  std::memset(cpu.base + program::kRingDataOffset + (cpu.tail & (ring_bytes_ - 1)), 0, size_bytes);
  cpu.tail += size_bytes;
  word(cpu.base, program::kRingTailOffset).store(cpu.tail, std::memory_order_release);
}

size_t Ring::drain(const std::function<void(std::span<const std::byte>)>& visit, size_t limit) {
  size_t count = 0;
  for (; count < limit; ++count) {
    Cpu* first = nullptr;
    const program::RecordHeader* record = nullptr;
    for (Cpu& cpu : cpus_) {
      const program::RecordHeader* candidate = next(cpu);
      if (candidate == nullptr || (record != nullptr && candidate->sequence > record->sequence)) continue;
      first = &cpu;
      record = candidate;
    }
    if (first == nullptr) break;
    CHECK(record->size_bytes >= sizeof(*record) && record->size_bytes <= ring_bytes_);
    visit({reinterpret_cast<const std::byte*>(record), record->size_bytes});
    consume(*first, record->size_bytes);
  }
  return count;
}

uint64_t Ring::lost() const {
  uint64_t total = 0;
  for (const Cpu& cpu : cpus_) total += word(cpu.base, program::kRingLostOffset).load(std::memory_order_relaxed);
  return total;
}

}  // namespace espy::runtime
