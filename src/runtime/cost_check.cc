#include "runtime/cost_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "base/printable.h"
#include "output/cost_report.h"
#include "runtime/hits.h"

namespace espy::runtime {

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
  std::string dearest;
  double dearest_cpus = 0;
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
    if (cpus <= out.dearest_cpus) continue;
    out.dearest_cpus = cpus;
    out.dearest = name_of_program(program, id);
  }
  return out;
}

bool asks_user() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

bool user_agrees() {
  std::fputs("go on? [y/N] ", stderr);
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
        "the probes see {:.0f} events a second, for which they will take about {} of a CPU, {} by {}", found.events,
        output::percent_text(found.cpus), output::percent_text(found.dearest_cpus), found.dearest);
    const bool may_ask = !is_accepted && asks_user();
    if (!is_accepted && !may_ask)
      return fail(what, 0,
                  "--yes or `config = { accept_cost = true }` goes on; --budget=5% keeps it below 5 % of a CPU");
    sink.message("runtime_error", what, "", 0, 0, 0);
    if (may_ask && !user_agrees()) return fail("ended, as the probes are too dear");
  }
  set_gates(machine, program, program::Gates::kOpen);
  return {};
}

}  // namespace espy::runtime
