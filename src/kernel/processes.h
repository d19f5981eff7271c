// The processes that run, from /proc/PID/stat (proc_pid_stat(5)).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace espy::kernel {

struct ProcessTime {
  uint64_t start_ticks = 0;  // after the start of the machine, of 1 / sysconf(_SC_CLK_TCK) s
  uint64_t cpu_ticks = 0;    // on CPUs, of all its threads
};
// Parses the content of /proc/PID/stat. nullopt for a thread of the kernel and a process that has ended: they have no
// memory.
std::optional<ProcessTime> parse_process_time(std::string_view stat);

// Returns the processes that have memory, those first that were on a CPU for the largest part of their life. Takes some
// 10 us per process. Once `is_late` returns true, the remaining ones are omitted.
std::vector<uint32_t> busiest_processes(const std::function<bool()>& is_late);

}  // namespace espy::kernel
