#include "serve/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "output/json.h"

namespace espy::serve {

namespace {

using output::ProgramCost;

constexpr size_t kMaxPrograms = 1000;    // in metrics
constexpr size_t kMaxShownPrograms = 8;  // on the page

std::string seconds_text(double ns) { return fmt::format("{:.9f}", ns / 1e9); }

// "tracepoint:syscalls:sys_enter_openat", "uprobe:/bin/app:a and 3 more"
std::string probes_text(const ProgramCost& program) {
  const std::string& first = program.probes[0].name;
  return program.probes.size() == 1 ? first : fmt::format("{} and {} more", first, program.probes.size() - 1);
}

// The dearest first.
std::vector<ProgramCost> dearest(const output::CostReport& report, size_t most) {
  std::vector<ProgramCost> out = report.programs;
  std::ranges::stable_sort(out, std::ranges::greater(), &ProgramCost::cpus);
  if (out.size() > most) out.resize(most);
  return out;
}

void write_maps(const program::Program& program, const output::CostReport& report, Exposition& out) {
  std::map<std::string, uint64_t> bytes;  // some of espy's own have the same name
  for (const program::MapId id : program.maps.ids())
    if (id.index < report.bytes_by_map.size()) bytes[program.maps[id].name] += report.bytes_by_map[id.index];
  out.family("espy_map_memory_bytes", MetricKind::kGauge, "Kernel memory of a map of the script, or of espy's own.");
  for (const auto& [name, sum] : bytes) out.sample("", label("map", name), sum);
}

}  // namespace

size_t write_cost(const program::Program& program, const runtime::RunCost& cost, Exposition& out) {
  const std::vector<ProgramCost> programs = dearest(cost.whole, kMaxPrograms);
  const auto family = [&](std::string_view name, MetricKind kind, std::string_view help, const auto& value_of) {
    out.family(name, kind, help);
    for (const ProgramCost& each : programs) {
      const std::string labels =
          label("program", std::to_string(each.id.index)) + "," + label("probe", probes_text(each));
      if (const std::string value = value_of(each); !value.empty())
        out.sample(kind == MetricKind::kCounter ? "_total" : "", labels, value);
    }
  };
  family("espy_program_timed_runs", MetricKind::kCounter, "Runs of a BPF program that were timed: a sample of all.",
         [](const ProgramCost& each) { return std::to_string(each.timed_runs); });
  family("espy_program_timed_seconds", MetricKind::kCounter, "Time of these runs, with the timing.",
         [](const ProgramCost& each) { return seconds_text(static_cast<double>(each.timed_ns)); });
  family("espy_program_hook_seconds", MetricKind::kGauge, "What it takes to reach the program and to return from it.",
         [](const ProgramCost& each) { return each.hook_ns ? seconds_text(*each.hook_ns) : std::string(); });
  family("espy_program_cpu_ratio", MetricKind::kGauge,
         "Share of a CPU that the program has taken lately, with reaching it, without the timing.",
         [&](const ProgramCost& each) {
           const auto lately = std::ranges::find(cost.lately.programs, each.id, &ProgramCost::id);
           return lately != cost.lately.programs.end() ? fmt::format("{:.6f}", lately->cpus) : std::string();
         });
  out.family("espy_timing_seconds", MetricKind::kGauge, "What the timing adds to the time of a run that is timed.");
  out.sample("", "", seconds_text(cost.whole.measuring.ns_per_run));
  write_maps(program, cost.whole, out);
  out.family("espy_peak_memory_bytes", MetricKind::kGauge, "The most memory that the process espy has had.");
  out.sample("", "", cost.whole.tracer_bytes);
  return cost.whole.programs.size() - programs.size();
}

std::string cost_json(const runtime::RunCost& cost) {
  std::string out = fmt::format("{{\"cpus\":{:.6f},\"map_bytes\":{},\"tracer_bytes\":{},\"programs\":[",
                                cost.lately.cpus(), cost.lately.map_bytes, cost.lately.tracer_bytes);
  bool is_first = true;
  for (const ProgramCost& program : dearest(cost.lately, kMaxShownPrograms)) {
    const std::string ns = program.ns_per_run ? fmt::format("{:.0f}", *program.ns_per_run) : "null";
    out += fmt::format("{}[{},{:.6f},{},{:.1f}]", is_first ? "" : ",", output::quoted(probes_text(program)),
                       program.cpus, ns, program.events);
    is_first = false;
  }
  return out + "]}";
}

}  // namespace espy::serve
