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
  // records. Where only program::kRingFirstDataBytes of each value's data are mapped yet, `map_whole` maps
  // all of one CPU's.
  Ring(std::span<std::byte> memory, uint32_t value_size, uint32_t ring_bytes, uint32_t data_offset,
       std::function<void(uint32_t cpu)> map_whole = {});

  using Visit = std::function<void(std::span<const std::byte> record)>;
  // Hands out complete records, merged over CPUs by sequence, until there are none or about `limit` are done; returns
  // how many. A CPU whose next record is still being written is passed over. Room is given back to the programs every
  // so often, not by record: what `visit` sees stays as it is until it returns.
  size_t drain(const Visit& visit, size_t limit);

  // Records that found no room, over all CPUs, since the start.
  uint64_t lost() const;

 private:
  struct Cpu {
    std::byte* base = nullptr;
    uint64_t tail = 0;     // as published
    uint64_t next = 0;     // the record to hand out next
    uint64_t ready = 0;    // behind the last record that is known to be complete
    uint64_t newest = 0;   // the highest sequence of those
    bool is_whole = true;  // all of it is mapped
  };
  program::RecordHeader* record_at(const Cpu& cpu, uint64_t position) const;
  const program::RecordHeader* complete_at(const Cpu& cpu, uint64_t position) const;
  static bool is_full(const Cpu& cpu);
  void look_ahead(Cpu& cpu, uint64_t newest);
  uint64_t look_ahead();
  size_t hand_out(uint64_t newest, const Visit& visit);
  void give_back(Cpu& cpu) const;

  std::vector<Cpu> cpus_;
  uint32_t ring_bytes_;
  uint32_t data_offset_;
  uint32_t slack_bytes_ = 0;
  std::function<void(uint32_t cpu)> map_whole_;
};

}  // namespace espy::runtime
