// ProbeRunner: attaches the probes of a program, and runs the probes that no kernel event fires.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "load/machine.h"
#include "program/program.h"
#include "spec/config.h"
#include "spec/provider.h"
#include "spec/registry.h"

namespace espy::runtime {

class ProbeRunner {
 public:
  // The arguments must outlive the runner. Requires that `registry` has the provider of every probe.
  ProbeRunner(load::Machine& machine, const program::Program& program, const spec::Registry& registry,
              const spec::Config& config)
      : machine_(machine), program_(program), registry_(registry), config_(config) {}

  // Probes other than begin, end, test and bench.
  bool has_attached_probes() const;
  // Probes that SIGUSR1 fires.
  bool has_signal_probes() const;
  // In the order of the script.
  std::vector<const program::Probe*> probes_of(spec::Provider::Phase phase) const;

  // Runs each probe of the phase once; fails where the first of them does.
  Status run_phase(spec::Provider::Phase phase) const;
  Status run_signal_probes() const;
  // Attaches the programs that follow processes.
  Status attach_followers() const;
  // Attaches the others. On every hook they then run in the order of their ids, which is the order in the script.
  Status attach() const;

 private:
  // The order of attaching, where the order on a hook leaves a choice. Entries come before returns, so that few returns
  // are seen without their entry, unless config.returns_first. Timers and iterators come last, because they may fire at
  // once.
  enum class Turn : uint8_t { kReturnsFirst, kEntries, kReversed, kOthers };
  Turn turn_of(program::ProgramId id, std::span<const program::ProbeId> probes) const;
  const spec::Provider& provider(const program::Probe& probe) const;
  Status attach_program(program::ProgramId id, std::span<const program::ProbeId> probes) const;

  load::Machine& machine_;
  const program::Program& program_;
  const spec::Registry& registry_;
  const spec::Config& config_;
};

}  // namespace espy::runtime
