#include "runtime/cost_meter.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "base/strings.h"
#include "output/loss_report.h"
#include "runtime/losses.h"

namespace espy::runtime {

namespace {

using load::Machine;
using program::MapId;
using program::ProbeId;
using program::ProgramId;

constexpr int kNeverMs = 1 << 30;
constexpr double kSecond = 1e9;
constexpr uint64_t kFirstWindowNs = 20 * kNsPerMs;
constexpr uint64_t kWindowNs = 5 * kNsPerMs;
constexpr uint64_t kPeriodNs = 100 * kNsPerMs;
// Fewer events in windows do not tell how many runs there are for each.
constexpr uint64_t kEnoughHits = 1000;

uint64_t tracer_cpu_ns() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

uint64_t tracer_memory_bytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

CostMeter::CostMeter(Machine& machine, const program::Program& program, const load::HookCosts& hooks)
    : machine_(machine), program_(program), hooks_(hooks) {
  closed_.runs.resize(program.programs.size());
  closed_.window_hits.resize(program.programs.size());
  recent_.resize(program.programs.size());
}

Machine::Runs CostMeter::runs_so_far(ProgramId id) const {
  if (is_by_kernel_) return machine_.counted_runs(id);
  const auto globals = machine_.memory(program_.globals);
  const uint32_t at = program_.own_times.offset_bytes + id.index * 16;
  if (program_.own_times.switch_offset == 0 || at + 16 > globals.size()) return {};
  return {load_le(globals, at), load_le(globals, at + 8)};
}

std::vector<uint64_t> CostMeter::hits_by_program() const {
  std::vector<uint64_t> out(program_.programs.size());
  for (const ProbeId probe : program_.probes.ids())
    if (const ProgramId id = program_.probes[probe].program; id.valid())
      out[id.index] += hits_of(machine_, program_, probe);
  return out;
}

void CostMeter::switch_timing(bool on) {
  if (is_by_kernel_) {
    is_by_kernel_ = machine_.count_runs(on).has_value();
    return;
  }
  if (program_.own_times.switch_offset == 0) return;
  const auto globals = machine_.memory(program_.globals);
  const uint64_t value = on ? 1 : 0;
  std::memcpy(globals.data() + program_.own_times.switch_offset, &value, sizeof(value));
}

void CostMeter::start(uint64_t now_ns) {
  is_by_kernel_ = program_.own_times.switch_offset == 0;
  if (is_by_kernel_) timing_ns_ = machine_.counting_ns();
  open_window(now_ns);
  next_ns_ = now_ns + kFirstWindowNs;
  first_ = counts(now_ns);
}

void CostMeter::open_window(uint64_t now_ns) {
  if (is_open_) return;
  switch_timing(true);
  is_open_ = true;
  opened_ns_ = now_ns;
  runs_at_open_.clear();
  for (const ProgramId id : program_.programs.ids()) runs_at_open_.push_back(runs_so_far(id));
  hits_at_open_ = hits_by_program();
}

// Adds what the open window has so far.
void CostMeter::add_window(Counts& to, uint64_t now_ns) const {
  if (!is_open_) return;
  const std::vector<uint64_t> hits = hits_by_program();
  for (const ProgramId id : program_.programs.ids()) {
    const Machine::Runs runs = runs_so_far(id);
    to.runs[id.index].count += runs.count - runs_at_open_[id.index].count;
    to.runs[id.index].ns += runs.ns - runs_at_open_[id.index].ns;
    to.window_hits[id.index] += hits[id.index] - hits_at_open_[id.index];
  }
  to.window_ns += now_ns - opened_ns_;
  ++to.windows;
}

void CostMeter::close_window(uint64_t now_ns) {
  if (!is_open_) return;
  const Counts before = closed_;
  add_window(closed_, now_ns);
  is_open_ = false;
  switch_timing(false);
  for (const ProgramId id : program_.programs.ids()) {
    const auto added = [&](uint64_t from, uint64_t to) { return static_cast<double>(to - from); };
    const Machine::Runs &from = before.runs[id.index], &to = closed_.runs[id.index];
    Recent& recent = recent_[id.index];
    const double runs = added(from.count, to.count);
    const double timing_ns = runs * static_cast<double>(timing_ns_);
    recent.events = recent.events / 2 + added(before.window_hits[id.index], closed_.window_hits[id.index]);
    recent.runs = recent.runs / 2 + runs;
    recent.ns = recent.ns / 2 + std::max(added(from.ns, to.ns) - timing_ns, 0.0);
    recent.window_ns = recent.window_ns / 2 + added(before.window_ns, closed_.window_ns);
  }
}

int CostMeter::tick(uint64_t now_ns) {
  if (is_driven_) return kNeverMs;
  if (now_ns >= next_ns_) {
    if (is_open_) {
      close_window(now_ns);
      next_ns_ = now_ns + kPeriodNs - kWindowNs;
    } else {
      open_window(now_ns);
      next_ns_ = now_ns + kWindowNs;
    }
  }
  return static_cast<int>((next_ns_ - now_ns + kNsPerMs - 1) / kNsPerMs);
}

void CostMeter::stop(uint64_t now_ns) {
  close_window(now_ns);
  end_ = counts(now_ns);
  read_map_bytes();
}

void CostMeter::read_map_bytes() {
  map_bytes_.clear();
  for (const MapId map : program_.maps.ids()) map_bytes_.push_back(machine_.memory_bytes(map));
}

CostMeter::Counts CostMeter::counts(uint64_t now_ns) const {
  Counts out = closed_;
  add_window(out, now_ns);
  out.at_ns = now_ns;
  out.tracer_ns = tracer_cpu_ns();
  for (const ProbeId probe : program_.probes.ids()) out.hits.push_back(hits_of(machine_, program_, probe));
  return out;
}

output::CostReport CostMeter::report_since(Counts& from, uint64_t now_ns) {
  Counts now = counts(now_ns);
  read_map_bytes();
  output::CostReport out = report_of(from, now);
  from = std::move(now);
  return out;
}

output::CostReport CostMeter::report() const { return report_of(first_, end_); }

output::CostReport CostMeter::report_of(const Counts& from, const Counts& to) const {
  output::CostReport out;
  out.seconds = std::max(static_cast<double>(to.at_ns - from.at_ns), 1.0) / kSecond;
  output::CostMeasuring& measuring = out.measuring;
  measuring.is_by_kernel = is_by_kernel_;
  measuring.windows = to.windows - from.windows;
  measuring.seconds = static_cast<double>(to.window_ns - from.window_ns) / kSecond;
  measuring.ns_per_run = static_cast<double>(timing_ns_);
  for (const ProgramId id : program_.programs.ids()) {
    // The clock is read twice; the first half of each reading is not seen.
    const auto runs = static_cast<double>(to.runs[id.index].count - from.runs[id.index].count);
    measuring.cpus += runs * 2 * static_cast<double>(timing_ns_) / kSecond / out.seconds;
    if (output::ProgramCost cost = cost_of(id, from, to, out.seconds); !cost.probes.empty())
      out.programs.push_back(std::move(cost));
  }
  for (const uint64_t bytes : map_bytes_) out.map_bytes += bytes;
  out.bytes_by_map = map_bytes_;
  out.tracer_cpus = static_cast<double>(to.tracer_ns - from.tracer_ns) / kSecond / out.seconds;
  out.tracer_bytes = tracer_memory_bytes();
  return out;
}

output::ProgramCost CostMeter::cost_of(ProgramId id, const Counts& from, const Counts& to, double seconds) const {
  output::ProgramCost out;
  out.id = id;
  add_probes(out, id, from, to);
  uint64_t hits = 0;
  for (const output::ProbeHits& probe : out.probes) hits += probe.hits;
  const uint64_t window_hits = to.window_hits[id.index] - from.window_hits[id.index];
  const auto window_runs = static_cast<double>(to.runs[id.index].count - from.runs[id.index].count);
  const auto window_ns = static_cast<double>(to.runs[id.index].ns - from.runs[id.index].ns);
  const double window_seconds = static_cast<double>(to.window_ns - from.window_ns) / kSecond;
  out.events = static_cast<double>(hits) / seconds;
  // Each event is a run; how many runs are none is known of the windows only.
  const double other_runs = std::max(window_runs - static_cast<double>(window_hits), 0.0);
  out.runs = out.events + (window_seconds > 0 ? other_runs / window_seconds : 0);
  if (window_hits >= kEnoughHits) out.runs = out.events * window_runs / static_cast<double>(window_hits);
  out.timed_runs = to.runs[id.index].count - from.runs[id.index].count;
  out.timed_ns = to.runs[id.index].ns - from.runs[id.index].ns;
  if (window_runs > 0) out.ns_per_run = window_ns / window_runs;
  out.hook_ns = hooks_.of(program_, id);
  const double program_ns = std::max(out.ns_per_run.value_or(0) - static_cast<double>(timing_ns_), 0.0);
  out.cpus = out.runs * (program_ns + out.hook_ns.value_or(0)) / kSecond;
  out.map_bytes = map_bytes(id);
  return out;
}

// Probes of one name share a row.
void CostMeter::add_probes(output::ProgramCost& cost, ProgramId id, const Counts& from, const Counts& to) const {
  if (program_.programs[id].hook == program::Hook::kNone) return;
  for (const ProbeId probe : program_.probes.ids()) {
    if (program_.probes[probe].program != id) continue;
    const uint64_t hits = to.hits[probe.index] - from.hits[probe.index];
    const auto same = std::ranges::find(cost.probes, program_.probes[probe].name, &output::ProbeHits::name);
    if (same == cost.probes.end())
      cost.probes.push_back({program_.probes[probe].name, hits});
    else
      same->hits += hits;
  }
}

uint64_t CostMeter::map_bytes(ProgramId id) const {
  std::set<MapId> maps;
  for (const program::MapReference& reference : program_.programs[id].map_references) maps.insert(reference.map);
  uint64_t sum = 0;
  for (const MapId map : maps)
    if (map.index < map_bytes_.size()) sum += map_bytes_[map.index];
  return sum;
}

namespace {

using program::ProgramId;

constexpr uint64_t kLookNs = 20'000'000;
// An action that has not run has no time yet: that of a map with a key and a few reads of memory.
constexpr double kAssumedActionNs = 100;

void set_gates(load::Machine& machine, const program::Program& program, uint64_t state) {
  const auto globals = machine.memory(program.globals);
  for (const ProgramId id : program.programs.ids())
    if (program.gates.has_gate(id))
      std::memcpy(globals.data() + program.gates.offset_bytes + id.index * 8, &state, sizeof(state));
}

uint64_t skipped_by(load::Machine& machine, const program::Program& program, ProgramId id) {
  uint64_t sum = 0;
  const auto globals = machine.memory(program.globals);
  for (uint32_t cpu = 0; cpu < program.cpu_count; ++cpu)
    sum += count_on_cpu(globals, program, program.gates.skipped, id, cpu);
  return sum;
}

void forget_skipped(load::Machine& machine, const program::Program& program) {
  const program::HitCounters& skipped = program.gates.skipped;
  const auto globals = machine.memory(program.globals);
  std::memset(globals.data() + skipped.offset_bytes, 0, size_t{skipped.stride_bytes} * program.cpu_count);
}

struct Look {
  double events = 0;  // a second
  double cpus = 0;
  std::string most_expensive;
  double highest_cpus = 0;
};

std::string name_of_program(const program::Program& program, ProgramId id) {
  size_t count = 0;
  std::string first;
  for (const program::Probe& probe : program.probes)
    if (probe.program == id && ++count == 1) first = probe.name;
  return count > 1 ? fmt::format("{} and {} others", first, count - 1) : first;
}

Look look(load::Machine& machine, const program::Program& program, const load::HookCosts& hooks) {
  Look out;
  const uint64_t begin_ns = machine.now_ns();
  ::usleep(kLookNs / 1000);
  const double seconds = static_cast<double>(machine.now_ns() - begin_ns) / 1e9;
  for (const ProgramId id : program.programs.ids()) {
    if (!program.gates.has_gate(id)) continue;
    const double events = static_cast<double>(skipped_by(machine, program, id)) / seconds;
    const double cpus = events * (hooks.of(program, id).value_or(0) + kAssumedActionNs) / 1e9;
    out.events += events;
    out.cpus += cpus;
    if (cpus <= out.highest_cpus) continue;
    out.highest_cpus = cpus;
    out.most_expensive = name_of_program(program, id);
  }
  return out;
}

bool asks_user() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

bool user_agrees() {
  std::fputs("continue? [y/N] ", stderr);
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

}  // namespace

void close_gates(load::Machine& machine, const program::Program& program) {
  set_gates(machine, program, program::Gates::kClosed);
}

Status check_cost(load::Machine& machine, const program::Program& program, const load::HookCosts& hooks,
                  bool is_accepted, output::Sink& sink) {
  const Look found = look(machine, program, hooks);
  forget_skipped(machine, program);
  if (found.cpus > kDearCpus) {
    const std::string what = fmt::format(
        "the probes see {:.0f} events a second, and would take about {} of a CPU, {} of it by {}", found.events,
        output::percent_text(found.cpus), output::percent_text(found.highest_cpus), found.most_expensive);
    const bool may_ask = !is_accepted && asks_user();
    if (!is_accepted && !may_ask)
      return fail(what, 0,
                  "--yes or `config = { accept_cost = true }` continues; --budget=5% limits the cost to 5% of a CPU");
    sink.message("runtime_error", what, "", 0, 0, 0);
    if (may_ask && !user_agrees()) return fail("stopped: the probes are too expensive");
  }
  set_gates(machine, program, program::Gates::kOpen);
  return {};
}

}  // namespace espy::runtime
