// Ring: the consumer of the event ring, whose protocol is in program/layout.h.
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
  // `memory`: the mmapable array, a value of `value_size` bytes per CPU; empty for a ring without records.
  // `data_offset`: of the data in a value. `map_whole`: maps the whole value of a CPU; null if it is mapped already,
  // otherwise kRingFirstDataBytes of the data of each value are.
  Ring(std::span<std::byte> memory, uint32_t value_size, uint32_t ring_bytes, uint32_t data_offset,
       std::function<void(uint32_t cpu)> map_whole = {});

  // Returns false to visit no other record.
  using Visit = std::function<bool(std::span<const std::byte> record)>;
  // Calls `visit` for complete records with a sequence below `end`, merged over the CPUs by sequence. Ends if there are
  // none, if about `limit` are visited, or if `visit` returns false. Returns the number of visited records. Skips CPUs
  // whose next record is being written. A record is valid until `visit` returns: space is released to the programs in
  // batches.
  size_t drain(const Visit& visit, size_t limit, uint64_t end = UINT64_MAX);

  // Returns how many records of all CPUs were dropped since the start because a ring was full.
  uint64_t lost() const;

  // Returns on how many CPUs a program has begun a record that it has not finished. Records after it cannot be read.
  uint32_t unfinished_cpus() const;

 private:
  struct Cpu {
    std::byte* base = nullptr;
    uint64_t tail = 0;     // as published
    uint64_t next = 0;     // position of the next record to visit
    uint64_t ready = 0;    // end of the last record that is known to be complete
    uint64_t newest = 0;   // the highest sequence before `ready`
    bool is_whole = true;  // the whole value is mapped
  };
  program::RecordHeader* record_at(const Cpu& cpu, uint64_t position) const;
  const program::RecordHeader* complete_at(const Cpu& cpu, uint64_t position) const;
  static bool is_full(const Cpu& cpu);
  void scan(Cpu& cpu, uint64_t newest);
  uint64_t scan();
  // `count` is how many were visited; `is_stopped`: `visit` has returned false.
  struct Visited {
    size_t count = 0;
    bool is_stopped = false;
  };
  Visited visit_up_to(uint64_t newest, const Visit& visit);
  void release(Cpu& cpu) const;

  std::vector<Cpu> cpus_;
  uint32_t ring_bytes_;
  uint32_t data_offset_;
  uint32_t slack_bytes_ = 0;
  std::function<void(uint32_t cpu)> map_whole_;
};

}  // namespace espy::runtime
