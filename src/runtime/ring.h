// The consumer's end of the event ring (program/ring.h has the protocol).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "program/program.h"

namespace espy::runtime {

class Ring {
 public:
  // `memory` is the whole mmapable array, a value of `value_size` bytes per CPU. An empty one is a ring without
  // records.
  Ring(std::span<std::byte> memory, uint32_t value_size, uint32_t ring_bytes);

  // Hands out complete records, merged over CPUs by sequence, at most `limit`; returns how many.
  // A CPU whose next record is still being written is passed over.
  size_t drain(const std::function<void(std::span<const std::byte> record)>& visit, size_t limit);

  // Records that found no room, over all CPUs, since the start.
  uint64_t lost() const;

 private:
  struct Cpu {
    std::byte* base = nullptr;
    uint64_t tail = 0;
  };
  const program::RecordHeader* next(const Cpu& cpu) const;  // the complete record at its tail, or nullptr
  void consume(Cpu& cpu, uint32_t size_bytes);

  std::vector<Cpu> cpus_;
  uint32_t ring_bytes_;
};

}  // namespace espy::runtime
