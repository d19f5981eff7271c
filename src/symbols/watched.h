// WatchedProcesses: the mappings of processes as events of the kernel tell them, for those that end before their
// /proc/PID/maps can be read. Internal to symbols/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbols/process.h"

namespace espy::symbols {

class WatchedProcesses {
 public:
  // Keeps at most `max_processes`. Beyond it, those that were not used for longest are dropped; `on_dropped` is called
  // for those of them that were to be kept.
  WatchedProcesses(CodeImages& images, size_t max_processes, std::function<void(uint32_t pid)> on_dropped)
      : images_(images), max_processes_(max_processes), on_dropped_(std::move(on_dropped)) {}

  // A process has started as a copy of `parent`; has executed a program; has mapped code; has ended.
  void start(uint32_t pid, uint32_t parent);
  void execute(uint32_t pid);
  void map(uint32_t pid, Mapping mapping);
  void end(uint32_t pid);

  // Keeps what is known of a process, and of those that it is a copy of, after its end.
  void keep(uint32_t pid);
  // Forgets the processes that had ended when this was called last and are not to be kept.
  void forget_ended();

  void clear();

  bool knows(uint32_t pid) const { return processes_.contains(pid); }
  // Returns the newest mapping of the process at an address, by the programs that it has executed; null if none is
  // known. The pointer is valid until the next change.
  CodeMapping* find(uint32_t pid, uint64_t address);
  // Returns the mappings at an address of the processes that had the id before, newest first.
  std::vector<CodeMapping*> find_former(uint32_t pid, uint64_t address);
  bool has_former(uint32_t pid) const;
  // Returns the process that it is a copy of; 0 if that is not known.
  uint32_t parent_of(uint32_t pid) const;

 private:
  struct Watched {
    uint64_t used_at = 0;  // counts uses
    uint32_t parent = 0;
    bool is_kept = false;
    std::vector<AddressSpace> spaces;  // one for each program, the last one is current
    size_t former_spaces = 0;          // so many of them, at the front, are of processes that had the id before
  };
  using Processes = std::unordered_map<uint32_t, Watched>;
  Watched& find_or_add(uint32_t pid);
  void drop_oldest();
  Processes::iterator erase(Processes::iterator process);

  CodeImages& images_;
  size_t max_processes_;
  std::function<void(uint32_t)> on_dropped_;
  Processes processes_;
  uint64_t uses_ = 0;
  size_t weight_ = 0;                           // of the mappings of all processes; one with a long path has more
  std::vector<uint32_t> ended_, ended_before_;  // since and before the last call of forget_ended
};

}  // namespace espy::symbols
