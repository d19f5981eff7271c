#include "kernel/processes.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "base/process.h"
#include "base/strings.h"
#include "kernel/proc_path.h"

namespace espy::kernel {

namespace {

uint64_t ticks_since_start() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::optional<ProcessTime> parse_process_time(std::string_view stat) {
  constexpr size_t kUserTime = 11, kSystemTime = 12, kStartTime = 19, kMemory = 20;  // fields after the name
  // The name is in parentheses, and may contain any.
  const size_t end = stat.rfind(") ");
  if (end == stat.npos) return std::nullopt;
  const auto fields = split(stat.substr(end + 2), ' ');
  if (fields.size() <= kMemory || fields[kMemory] == "0") return std::nullopt;
  const auto number = [&](size_t field) { return static_cast<uint64_t>(parse_int(fields[field]).value_or(0)); };
  return ProcessTime{number(kStartTime), number(kUserTime) + number(kSystemTime)};
}

std::vector<uint32_t> busiest_processes(const std::function<bool()>& is_late) {
  const uint64_t now = ticks_since_start();
  std::vector<std::pair<double, uint32_t>> busy;
  for (const uint32_t pid : numbered_entries("/proc")) {
    if (is_late()) break;
    const auto stat = read_file(proc_path(pid, "stat"));
    const auto time = stat ? parse_process_time(*stat) : std::nullopt;
    if (!time) continue;
    const uint64_t age = now > time->start_ticks ? now - time->start_ticks : 0;
    busy.emplace_back(static_cast<double>(time->cpu_ticks) / static_cast<double>(age + 1), pid);
  }
  std::ranges::sort(busy, std::greater());
  std::vector<uint32_t> out;
  out.reserve(busy.size());
  for (const auto& [part, pid] : busy) out.push_back(pid);
  return out;
}

}  // namespace espy::kernel
