// The processes and control groups of the machine, from procfs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espy::kernel {

// ---- Paths below /proc/PID.

// "/proc/PID/FILE"
inline std::string proc_path(uint32_t pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(file);
}

// ---- The processes that run, from /proc/PID/stat (proc_pid_stat(5)).

struct ProcessTime {
  uint64_t start_ticks = 0;  // after the start of the machine, of 1 / sysconf(_SC_CLK_TCK) s
  uint64_t cpu_ticks = 0;    // on CPUs, of all its threads
};
// Parses the content of /proc/PID/stat. nullopt for a thread of the kernel and a process that has ended: they have no
// memory.
std::optional<ProcessTime> parse_process_time(std::string_view stat);

// Returns when the process with that number in /proc started, in 1 / sysconf(_SC_CLK_TCK) s of CLOCK_BOOTTIME, as
// clock_gettime(2) has it; nullopt if there is none.
std::optional<uint64_t> start_ticks(uint32_t pid);

struct ProcessParent {
  uint32_t parent = 0;     // 0: none
  bool is_zombie = false;  // it has ended, and its parent has not waited for it
};
// nullopt if the process is not there any more.
std::optional<ProcessParent> parent_of(uint32_t pid);

// Returns the processes with memory, sorted by the part of their life on a CPU, the largest first. Takes some 10 us per
// process. Once `is_late` returns true, it looks at no more: the remaining ones follow, the newest first.
std::vector<uint32_t> busiest_processes(const std::function<bool()>& is_late);

// Returns the nanoseconds that the threads of a process have been on a CPU so far; nullopt if it has ended.
std::optional<uint64_t> process_cpu_ns(uint32_t pid);

// The times of all threads of a process, up to the last tick for threads that are on a CPU.
struct SchedulingTimes {
  uint64_t run_ns = 0;   // on a CPU
  uint64_t wait_ns = 0;  // able to run, without a CPU
};
// Adds the numbers in the content of /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst). False if it has
// none.
bool add_scheduling_times(std::string_view schedstat, SchedulingTimes& sum);
// nullopt if the process has ended, or /proc is of another pid namespace. In processes with many threads, the first
// ones stand for all.
std::optional<SchedulingTimes> scheduling_times(uint32_t pid);

// ---- Where control groups are.

// Returns the directory where the hierarchy of version 2 is mounted, by /proc/self/mountinfo (proc_pid_mountinfo(5));
// "" if it is not.
std::string control_group_mount();

}  // namespace espy::kernel
