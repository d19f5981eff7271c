// software and hardware: perf counters of the kernel and of the CPU. They fire each COUNT events.
#include <linux/perf_event.h>

#include <set>
#include <span>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "kernel/cpu_list.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kSoftware;
extern const spec::Provider kHardware;

namespace {

struct Event {
  std::string_view name;
  std::string_view alias;
  uint64_t config;
  uint64_t default_period;
};

constexpr Event kSoftwareEvents[] = {
    {"alignment-faults", "", PERF_COUNT_SW_ALIGNMENT_FAULTS, 1},
    {"bpf-output", "", PERF_COUNT_SW_BPF_OUTPUT, 1},
    {"context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, 1000},
    {"cpu-clock", "cpu", PERF_COUNT_SW_CPU_CLOCK, 1'000'000},
    {"cpu-migrations", "", PERF_COUNT_SW_CPU_MIGRATIONS, 1},
    {"dummy", "", PERF_COUNT_SW_DUMMY, 1},
    {"emulation-faults", "", PERF_COUNT_SW_EMULATION_FAULTS, 1},
    {"major-faults", "", PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
    {"minor-faults", "", PERF_COUNT_SW_PAGE_FAULTS_MIN, 100},
    {"page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, 100},
    {"task-clock", "", PERF_COUNT_SW_TASK_CLOCK, 1},
};

constexpr Event kHardwareEvents[] = {
    {"backend-stalls", "", PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 1'000'000},
    {"branch-instructions", "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100'000},
    {"branch-misses", "", PERF_COUNT_HW_BRANCH_MISSES, 100'000},
    {"bus-cycles", "", PERF_COUNT_HW_BUS_CYCLES, 100'000},
    {"cache-misses", "", PERF_COUNT_HW_CACHE_MISSES, 1'000'000},
    {"cache-references", "", PERF_COUNT_HW_CACHE_REFERENCES, 1'000'000},
    {"cpu-cycles", "cycles", PERF_COUNT_HW_CPU_CYCLES, 1'000'000},
    {"frontend-stalls", "", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 1'000'000},
    {"instructions", "", PERF_COUNT_HW_INSTRUCTIONS, 1'000'000},
    {"ref-cycles", "", PERF_COUNT_HW_REF_CPU_CYCLES, 1'000'000},
};

template <const spec::Provider& kRow>
constexpr bool kIsHardware = &kRow == &kHardware;

template <const spec::Provider& kRow>
std::span<const Event> events() {
  if constexpr (kIsHardware<kRow>) return kHardwareEvents;
  return kSoftwareEvents;
}

template <const spec::Provider& kRow>
const Event* find_event(std::string_view name) {
  for (const Event& event : events<kRow>())
    if (event.name == name || (!event.alias.empty() && event.alias == name)) return &event;
  return nullptr;
}

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  const std::string_view example = kRow.example.substr(0, kRow.example.find(' '));
  if (request.parts.empty() || request.parts.size() > 2) return report_wrong_form(request, kRow.form, example);
  const Event* event = find_event<kRow>(request.parts[0]);
  if (event == nullptr) return {};
  if (kIsHardware<kRow> && !request.is_listing() && !request.kernel.has(kernel::Feature::kPerfEventHardware))
    return report_unavailable(request, "no-counters", "this machine has no hardware counters",
                              "a virtual machine has them only if its host provides them");
  spec::BoundProbe bound;
  bound.probe.number = event->default_period;
  if (request.parts.size() == 2 && !request.parts[1].empty()) {
    const auto period = parse_count(request.parts[1]);
    if (!period) return report_wrong_form(request, kRow.form, example);
    bound.probe.number = *period;
  }
  bound.probe.provider = kRow.name;
  bound.probe.name = full_name(kRow.name, request.parts);
  bound.probe.target = event->name;
  bound.probe.span = request.point.span;
  bound.share.place = bound.probe.name;
  return {bound};
}

template <const spec::Provider& kRow>
spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out = perf_event_context(request);
  const program::Probe& probe = request.probes.front();
  const Event* event = find_event<kSoftware>(probe.target);
  const bool is_clock =
      event != nullptr && (event->config == PERF_COUNT_SW_CPU_CLOCK || event->config == PERF_COUNT_SW_TASK_CLOCK);
  const Event* sampled = find_event<kRow>(probe.target);
  out.sampled = {sampled->name, is_clock ? "nanoseconds" : "count", probe.number};
  // perf_sw_event_sched() in include/linux/perf_event.h
  out.is_raised_by_kernel = event != nullptr && (event->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
                                                 event->config == PERF_COUNT_SW_CPU_MIGRATIONS);
  // perf_swevent_add() in kernel/events/core.c. Clocks are timers, which expire in the order of their starts.
  out.is_last_attached_first = !is_clock;
  return out;
}

// With --follow, also to the processes that are there already. Those that they start inherit the counters.
Status attach_to_processes(const spec::AttachRequest& request, program::ProbeId id, const load::PerfEvent& event,
                           const std::vector<spec::TracedProcess>& only) {
  std::set<uint32_t> started;
  if (const program::MapId map = request.program.following.processes;
      map.valid() && !request.config.tracee.pid_namespace)
    TRY_STATUS(request.machine.for_each(map, [&](std::span<const std::byte> key, std::span<const std::byte>) {
      started.insert(static_cast<uint32_t>(load_le(key, 0, 4)));
    }));
  TRY_STATUS(attach_to_traced_threads(request, id, event, only));
  for (const spec::TracedProcess& process : only) started.erase(process.pid);
  for (const uint32_t each : started) {
    const Status status = attach_to_threads(request, id, event, each);
    if (!status && status.error().code != ESRCH) return status;
  }
  return {};
}

template <const spec::Provider& kRow>
Status attach_one(const spec::AttachRequest& request, program::ProbeId id) {
  const program::Probe& probe = request.program.probes[id];
  const Event* found = find_event<kRow>(probe.target);
  CHECK(found != nullptr);
  load::PerfEvent event;
  event.type = kIsHardware<kRow> ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  event.config = found->config;
  event.period = probe.number;
  // Counts the events of this process only. A counter per CPU, filtered by pid, would count all processes.
  const std::vector<spec::TracedProcess> only = request.config.tracee.only_processes();
  if (!only.empty()) return attach_to_processes(request, id, event, only);
  for (const uint32_t cpu : kernel::online_cpus()) {
    event.cpu = static_cast<int32_t>(cpu);
    event.on_each_cpu = true;
    TRY_STATUS(request.machine.attach_perf_event(request.program_id, event, id.index));
  }
  return {};
}

template <const spec::Provider& kRow>
Status attach(spec::AttachRequest& request) {
  return attach_each_probe(request, attach_one<kRow>);
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  const std::string pattern = request.parts.empty() ? "*" : request.parts[0];
  std::vector<spec::ListedProbe> out;
  for (const Event& event : events<kRow>()) {
    for (const std::string_view name : {event.name, event.alias})
      if (!name.empty() && glob_match(pattern, name))
        out.push_back({std::string(kRow.name) + ":" + std::string(name) + ":", {}});
  }
  return out;
}

}  // namespace

extern const spec::Provider kSoftware = {
    .name = "software",
    .aliases = {"s"},
    .doc = "Fires each COUNT occurrences of a software event of the kernel: page-faults, context-switches, ...",
    .form = "software:EVENT or software:EVENT:COUNT",
    .bind = bind<kSoftware>,
    .context = context<kSoftware>,
    .attach = attach<kSoftware>,
    .list = list<kSoftware>,
    .example = "software:page-faults:1 { @[comm] = count(); }"};

extern const spec::Provider kHardware = {
    .name = "hardware",
    .aliases = {"h"},
    .doc = "Fires each COUNT occurrences of a hardware event of the CPU: cpu-cycles, cache-misses, ...",
    .form = "hardware:EVENT or hardware:EVENT:COUNT",
    .bind = bind<kHardware>,
    .context = perf_event_context,
    .attach = attach<kHardware>,
    .list = list<kHardware>,
    .example = "hardware:cache-misses:10000 { @[comm] = count(); }"};

}  // namespace espy::probes
