// ProcessEvents: events of the processes of the machine, from perf: start, execute a program, map code, end.
//
// The kernel writes a record for each event (PERF_RECORD_FORK, COMM, MMAP2 and EXIT of perf_event_open(2)). So the
// mappings of a process are known even if it ends before /proc/PID/maps can be read. A ring per CPU, which has to be
// drained regularly; records that do not fit are lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "load/linux.h"

namespace espy::load {

struct ProcessEvent {
  enum class Kind : uint8_t { kStart, kExecute, kMap, kEnd } kind = Kind::kStart;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint32_t pid = 0;      // in the pid namespace of the tracer
  uint32_t parent = 0;   // kStart: the process that it is a copy of
  // kMap: as in /proc/PID/maps.
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint64_t device = 0;  // as makedev(3) packs it
  uint64_t inode = 0;
  std::string path = {};
};

class ProcessEvents {
 public:
  // Requires CAP_PERFMON. Takes 512 KB for each CPU, and less where all CPUs would take more than 8 MB, or where the
  // kernel allows less (perf_event_mlock_kb of sysctl, RLIMIT_MEMLOCK).
  static Result<ProcessEvents> open();

  // Calls `visit` for each event since the last call, in the order of their time.
  void drain(const std::function<void(const ProcessEvent&)>& visit);

  // Descriptors that are readable once a ring is half full.
  std::vector<int> descriptors() const;

  // Returns how many events found no room, as far as the kernel has reported it: with the next one that did.
  uint64_t lost() const { return lost_; }

 private:
  struct Ring {
    OwnedFd event;
    Mapping memory;  // a perf_event_mmap_page, then the data
  };
  void read(const Ring& ring, std::vector<ProcessEvent>& out);

  std::vector<Ring> rings_;  // of the CPUs that are online
  uint64_t lost_ = 0;
};

}  // namespace espy::load
