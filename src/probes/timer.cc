// interval and profile: perf's software clock, on one CPU or on each.
#include <fmt/format.h>
#include <linux/perf_event.h>

#include "base/strings.h"
#include "kernel/cpu_list.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

namespace {

constexpr uint64_t kMinPeriodNs = 1000;

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  const auto rate = parse_rate(request.parts);
  if (!rate && request.parts.size() == 2 && request.parts[1] == "0") {
    request.diagnostics.error("bad-attach-point", request.point.span, "a timer needs a number from 1 on, not 0");
    return {};
  }
  if (!rate) return report_wrong_form(request, kRow.form, kRow.example.substr(0, kRow.example.find(' ')));
  if (rate->period_ns < kMinPeriodNs) {
    const bool is_plain = request.parts.size() == 1 && parse_int(request.parts[0]);
    const std::string hint = is_plain ? fmt::format(
                                            "a number without a unit is in nanoseconds: `{0}:hz:{1}` fires {1} "
                                            "times a second",
                                            kRow.name, request.parts[0])
                                      : "";
    request.diagnostics.error("period-too-short", request.point.span, "the shortest period is 1 microsecond", hint);
    return {};
  }
  spec::BoundProbe bound;
  bound.probe.provider = kRow.name;
  bound.probe.name = full_name(kRow.name, request.parts);
  bound.probe.number = rate->period_ns;
  bound.probe.span = request.point.span;
  bound.share.place = bound.probe.name;
  return {bound};
}

spec::ProbeContext interval_context(spec::ContextRequest& request) {
  spec::ProbeContext out = perf_event_context(request);
  out.after_exit = spec::AfterExit::kForAWhile;
  out.is_limited_to_pid = false;  // fires at its rate whichever process is running
  return out;
}

spec::ProbeContext profile_context(spec::ContextRequest& request) {
  spec::ProbeContext out = perf_event_context(request);
  out.sampled = {"cpu", "nanoseconds", request.probes.front().number};
  return out;
}

template <bool kIsPerCpu>
Status attach(spec::AttachRequest& request) {
  for (const program::ProbeId id : request.probes) {
    load::PerfEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_CPU_CLOCK;
    event.period = request.program.probes[id].number;
    for (const uint32_t cpu : kernel::online_cpus()) {
      event.cpu = static_cast<int32_t>(cpu);
      event.on_each_cpu = kIsPerCpu;
      TRY_STATUS(request.machine.attach_perf_event(request.program_id, event, id.index));
      if (!kIsPerCpu) break;
    }
  }
  return {};
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  const std::string pattern = request.parts.empty() ? "*" : request.parts[0];
  std::vector<spec::ListedProbe> out;
  for (const std::string_view unit : {"hz", "ms", "s", "us"})
    if (glob_match(pattern, unit)) out.push_back({std::string(kRow.name) + ":" + std::string(unit) + ":", {}});
  return out;
}

}  // namespace

extern const spec::Provider kInterval = {
    .name = "interval",
    .aliases = {"i"},
    .doc = "Fires at a fixed rate on one CPU, for periodic output or to end the run after a time.",
    .form = "interval:UNIT:N with hz, s, ms or us, or interval:DURATION",
    .bind = bind<kInterval>,
    .context = interval_context,
    .attach = attach<false>,
    .list = list<kInterval>,
    .fires_rarely = true,
    .timer = spec::Timer::kOnOneCpu,
    .example = "interval:ms:100 { printf(\"tick\\n\"); exit(); }"};

extern const spec::Provider kProfile = {
    .name = "profile",
    .aliases = {"p"},
    .doc = "Fires at a fixed rate on every CPU, for sampling. `ctx.sample_period` and `ctx.addr` describe the sample.",
    .form = "profile:UNIT:N with hz, s, ms or us, or profile:DURATION",
    .bind = bind<kProfile>,
    .context = profile_context,
    .attach = attach<true>,
    .list = list<kProfile>,
    .timer = spec::Timer::kOnEachCpu,
    .example = "profile:hz:99 { @[comm] = count(); }"};

}  // namespace espy::probes
