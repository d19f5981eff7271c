#include "check/other_tasks.h"

#include <fmt/format.h>

#include <string_view>

#include "base/strings.h"

namespace espy::check {

namespace {

struct Events {
  std::string_view pattern;
  std::string_view where;
};

constexpr std::string_view kAnyTask = "in interrupts as well, whatever task these interrupt";
constexpr std::string_view kKernelThreads = "in threads of the kernel as well";
constexpr Events kInOtherTasks[] = {
    {"sched_switch", "in the task that leaves the CPU, not in the one that comes"},
    {"sched_wak*", "in the task that wakes another one, or in an interrupt"},
    {"sched_stat_*", "in other tasks than the one that it is about"},
    {"sched_migrate_task", "in other tasks than the one that it is about"},
    {"signal_generate", "in the task that sends the signal"},
    {"block_*", kAnyTask},
    {"net_*", kAnyTask},
    {"netif_*", kAnyTask},
    {"napi_*", kAnyTask},
    {"tcp_*", kAnyTask},
    {"udp_*", kAnyTask},
    {"sock_*", kAnyTask},
    {"inet_*", kAnyTask},
    {"skb_*", kAnyTask},
    {"*_skb", kAnyTask},
    {"irq_*", kAnyTask},
    {"softirq_*", kAnyTask},
    {"timer_*", kAnyTask},
    {"hrtimer_*", kAnyTask},
    {"workqueue_*", kKernelThreads},
    {"writeback_*", kKernelThreads},
    {"mark_victim", "in the task for which there is no memory"},
};

const Events* find_events(const program::Probe& probe) {
  if (!probe.provider.ends_with("tracepoint")) return nullptr;
  const std::string_view name = std::string_view(probe.name).substr(probe.name.rfind(':') + 1);
  for (const Events& each : kInOtherTasks)
    if (glob_match(each.pattern, name)) return &each;
  return nullptr;
}

std::string_view filter_of(const spec::Config& config) {
  if (config.cgroup) return "--cgroup";
  if (!config.only_process()) return "";
  return config.follows ? "--follow" : "-p";
}

struct Found {
  const program::Probe* probe = nullptr;
  const Events* events = nullptr;
};

Found find_first(const Checked& checked) {
  if (filter_of(checked.config).empty()) return {};
  for (const Unit& unit : checked.units) {
    if (!unit.context.is_limited_to_pid) continue;
    for (const ProbeId id : unit.probes)
      if (const Events* events = find_events(checked.probes[id])) return {&checked.probes[id], events};
  }
  return {};
}

}  // namespace

std::string events_in_other_tasks(const Checked& checked) {
  const Found found = find_first(checked);
  if (found.probe == nullptr) return "";
  return fmt::format("{} happens {}: {} leaves out what is of the traced process there", found.probe->name,
                     found.events->where, filter_of(checked.config));
}

void warn_of_other_tasks(const Checked& checked, source::Diagnostics& diagnostics) {
  const Found found = find_first(checked);
  if (found.probe != nullptr)
    diagnostics.warning("in-other-tasks", found.probe->span, events_in_other_tasks(checked),
                        "a script that asks `traced` acts in all tasks, and chooses by that");
}

}  // namespace espy::check
