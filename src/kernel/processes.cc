#include "kernel/processes.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"

namespace espy::kernel {

namespace {

constexpr size_t kStartTime = 19;  // fields of /proc/PID/stat after the name

uint64_t ticks_since_start() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
}

// The fields of /proc/PID/stat after the name, which is in parentheses and may contain any character. Empty if there is
// no name. Views into `stat`.
using Fields = std::vector<std::string_view>;
Fields fields_after_name(std::string_view stat) {
  const size_t end = stat.rfind(") ");
  return end == stat.npos ? Fields() : split(stat.substr(end + 2), ' ');
}

}  // namespace

std::optional<uint64_t> start_ticks(uint32_t pid) {
  const auto stat = read_file(proc_path(pid, "stat"));
  const auto fields = stat ? fields_after_name(*stat) : Fields();
  const auto ticks = fields.size() > kStartTime ? parse_int(fields[kStartTime]) : std::nullopt;
  return ticks ? std::optional(static_cast<uint64_t>(*ticks)) : std::nullopt;
}

std::optional<ProcessTime> parse_process_time(std::string_view stat) {
  constexpr size_t kUserTime = 11, kSystemTime = 12, kMemory = 20;  // fields after the name
  const auto fields = fields_after_name(stat);
  if (fields.size() <= kMemory || fields[kMemory] == "0") return std::nullopt;
  const auto number = [&](size_t field) { return static_cast<uint64_t>(parse_int(fields[field]).value_or(0)); };
  return ProcessTime{number(kStartTime), number(kUserTime) + number(kSystemTime)};
}

std::optional<ProcessParent> parent_of(uint32_t pid) {
  const auto stat = read_file(proc_path(pid, "stat"));
  const auto fields = stat ? fields_after_name(*stat) : Fields();
  const auto parent = fields.size() > 1 ? parse_int(fields[1]) : std::nullopt;
  if (!parent || *parent < 0) return std::nullopt;
  return ProcessParent{static_cast<uint32_t>(*parent), fields[0] == "Z" || fields[0] == "X"};
}

std::vector<uint32_t> busiest_processes(const std::function<bool()>& is_late) {
  const uint64_t now = ticks_since_start();
  std::vector<uint32_t> pids = numbered_entries("/proc");
  std::ranges::sort(pids, std::greater());  // the many threads of the kernel, which have low numbers, last
  std::vector<std::pair<double, uint32_t>> busy;
  auto next = pids.begin();
  for (; next != pids.end() && !is_late(); ++next) {
    const auto stat = read_file(proc_path(*next, "stat"));
    const auto time = stat ? parse_process_time(*stat) : std::nullopt;
    if (!time) continue;
    const uint64_t age = now > time->start_ticks ? now - time->start_ticks : 0;
    busy.emplace_back(static_cast<double>(time->cpu_ticks) / static_cast<double>(age + 1), *next);
  }
  std::ranges::sort(busy, std::greater());
  std::vector<uint32_t> out;
  out.reserve(busy.size() + static_cast<size_t>(pids.end() - next));
  for (const auto& [part, pid] : busy) out.push_back(pid);
  out.insert(out.end(), next, pids.end());
  return out;
}

std::optional<uint64_t> process_cpu_ns(uint32_t pid) {
  clockid_t clock = 0;
  timespec time = {};
  if (::clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

bool add_scheduling_times(std::string_view schedstat, SchedulingTimes& sum) {
  const auto fields = split(schedstat, ' ');
  if (fields.size() < 2) return false;
  const auto run = parse_int(fields[0]), wait = parse_int(fields[1]);
  if (!run || !wait || *run < 0 || *wait < 0) return false;
  sum.run_ns += static_cast<uint64_t>(*run);
  sum.wait_ns += static_cast<uint64_t>(*wait);
  return true;
}

std::optional<SchedulingTimes> scheduling_times(uint32_t pid) {
  constexpr size_t kMostThreads = 64;
  std::error_code failed;
  if (std::filesystem::read_symlink("/proc/self", failed) != std::to_string(::getpid())) return std::nullopt;
  SchedulingTimes sum;
  bool has_any = false;
  auto threads = numbered_entries(proc_path(pid, "task"));
  threads.resize(std::min(threads.size(), kMostThreads));
  for (const uint32_t thread : threads)
    if (const auto content = read_file(proc_path(pid, "task/" + std::to_string(thread) + "/schedstat")))
      has_any |= add_scheduling_times(*content, sum);
  return has_any ? std::optional(sum) : std::nullopt;
}

std::string control_group_mount() {
  const auto mounts = read_file("/proc/self/mountinfo");
  if (!mounts) return "";
  for (const std::string_view line : split(*mounts, '\n'))
    if (const auto mount = parse_mount(line); mount && mount->type == "cgroup2") return std::string(mount->place);
  return "";
}

}  // namespace espy::kernel
