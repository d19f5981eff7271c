// software: the kernel's own counters, through perf.
#include <linux/perf_event.h>

#include <algorithm>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/all.h"
#include "probes/common.h"

namespace espy::probes {

namespace {

struct Event {
  std::string_view name;
  std::string_view alias;
  uint64_t config;
  uint64_t default_period;
};

constexpr Event kEvents[] = {
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

const Event* find_event(std::string_view name) {
  for (const Event& event : kEvents)
    if (event.name == name || (!event.alias.empty() && event.alias == name)) return &event;
  return nullptr;
}

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (request.parts.empty() || request.parts.size() > 2)
    return wrong_form(request, kSoftware.form, "software:page-faults:100");
  const Event* event = find_event(request.parts[0]);
  if (event == nullptr) return {};
  spec::BoundProbe bound;
  bound.probe.number = event->default_period;
  if (request.parts.size() == 2 && !request.parts[1].empty()) {
    const auto period = parse_int(request.parts[1]);
    if (!period || *period <= 0) return wrong_form(request, kSoftware.form, "software:page-faults:100");
    bound.probe.number = static_cast<uint64_t>(*period);
  }
  bound.probe.provider = kSoftware.name;
  bound.probe.name = full_name(kSoftware.name, request.parts);
  bound.probe.target = event->name;
  bound.probe.span = request.point.span;
  bound.share = bound.probe.name;
  return {bound};
}

spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kPerfEvent;
  add_registers(out, request.kernel.arch(), request.types, false);
  out.arguments.clear();
  return out;
}

Status attach(spec::AttachRequest& request) {
  for (const program::ProbeId id : request.probes) {
    const program::Probe& probe = request.program.probes[id];
    const Event* found = find_event(probe.target);
    CHECK(found != nullptr);
    load::PerfEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = found->config;
    event.period = probe.number;
    for (const int32_t cpu : online_cpus()) {
      event.cpu = cpu;
      TRY_STATUS(request.machine.attach_perf_event(request.program_id, event, id.index));
    }
  }
  return {};
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  const std::string pattern = request.parts.empty() ? "*" : request.parts[0];
  std::vector<spec::ListedProbe> out;
  for (const Event& event : kEvents) {
    for (const std::string_view name : {event.name, event.alias})
      if (!name.empty() && glob_match(pattern, name)) out.push_back({"software:" + std::string(name) + ":", {}});
  }
  return out;
}

}  // namespace

const spec::Provider kSoftware = {
    .name = "software",
    .aliases = {"s"},
    .doc = "Fires each COUNT occurrences of an event that the kernel counts: page-faults, context-switches, ...",
    .form = "software:EVENT or software:EVENT:COUNT",
    .bind = bind,
    .context = context,
    .attach = attach,
    .list = list,
    .example = "software:page-faults:1 { @[comm] = count(); }"};

}  // namespace espy::probes
