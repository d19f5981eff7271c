#include "runtime/probe_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "base/fatal.h"

namespace espy::runtime {

namespace {

using Phase = spec::Provider::Phase;

bool is_on_signal(const spec::Provider& provider) {
  return provider.phase == Phase::kAttached && provider.attach == nullptr;
}

}  // namespace

const spec::Provider& ProbeRunner::provider(const program::Probe& probe) const {
  const spec::Provider* found = registry_.find_provider(probe.provider);
  CHECK(found != nullptr);
  return *found;
}

bool ProbeRunner::has_attached_probes() const { return !probes_of(Phase::kAttached).empty(); }

bool ProbeRunner::has_signal_probes() const {
  return std::ranges::any_of(program_.probes,
                             [&](const program::Probe& probe) { return is_on_signal(provider(probe)); });
}

std::vector<const program::Probe*> ProbeRunner::probes_of(Phase phase) const {
  std::vector<const program::Probe*> out;
  for (const program::Probe& probe : program_.probes)
    if (provider(probe).phase == phase) out.push_back(&probe);
  return out;
}

Status ProbeRunner::run_phase(Phase phase) const {
  for (const program::Probe* probe : probes_of(phase)) TRY_STATUS(machine_.run(probe->program));
  return {};
}

Status ProbeRunner::run_signal_probes() const {
  for (const program::Probe& probe : program_.probes)
    if (is_on_signal(provider(probe))) TRY_STATUS(machine_.run(probe.program));
  return {};
}

Status ProbeRunner::attach_followers() const {
  for (const auto& [tracepoint, id] : program_.following.programs)
    TRY_STATUS(machine_.attach_raw_tracepoint(id, tracepoint, 0));
  return {};
}

Status ProbeRunner::attach() const {
  // By program, as one program may serve many probes.
  std::map<program::ProgramId, std::vector<program::ProbeId>> by_program;
  for (const program::ProbeId id : program_.probes.ids()) {
    const program::Probe& probe = program_.probes[id];
    if (provider(probe).phase == Phase::kAttached && !is_on_signal(provider(probe)))
      by_program[probe.program].push_back(id);
  }
  const uint64_t count_before = machine_.attached_count();
  for (const Turn turn : {Turn::kReturnsFirst, Turn::kEntries, Turn::kReversed, Turn::kOthers}) {
    const auto attach = [&](program::ProgramId id, std::span<const program::ProbeId> probes,
                            bool is_reversed) -> Status {
      if (program_.programs[id].is_last_attached_first != is_reversed || turn_of(id, probes) != turn) return {};
      return attach_program(id, probes);
    };
    for (auto each = by_program.rbegin(); each != by_program.rend(); ++each)
      TRY_STATUS(attach(each->first, each->second, true));
    for (const auto& [id, probes] : by_program) TRY_STATUS(attach(id, probes, false));
  }
  const auto& skipped = machine_.skipped_probes();
  if (machine_.attached_count() == count_before && !skipped.empty())
    return fail(fmt::format("cannot attach to {}: {}", skipped.front().name, skipped.front().reason), 0,
                "nothing else is left to attach");
  return {};
}

ProbeRunner::Turn ProbeRunner::turn_of(program::ProgramId id, std::span<const program::ProbeId> probes) const {
  const spec::Provider& of_first = provider(program_.probes[probes.front()]);
  const auto has_these_returns = [&](const spec::Provider* other) { return other->return_provider == &of_first; };
  if (config_.returns_first && std::ranges::any_of(registry_.providers(), has_these_returns))
    return Turn::kReturnsFirst;
  if (!program_.programs[id].is_last_attached_first) return Turn::kOthers;
  return of_first.return_provider != nullptr ? Turn::kEntries : Turn::kReversed;
}

Status ProbeRunner::attach_program(program::ProgramId id, std::span<const program::ProbeId> probes) const {
  const spec::Provider& row = provider(program_.probes[probes.front()]);
  spec::AttachRequest request{machine_, program_, id, probes, config_, &row};
  return row.attach(request);
}

}  // namespace espy::runtime
