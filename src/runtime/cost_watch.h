// CostWatch: the part of a session that measures what its probes cost, shows it, and keeps it within a budget, if it is
// asked to.
#pragma once

#include <cstdint>
#include <optional>

#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/budget_keeper.h"
#include "runtime/cost_meter.h"

namespace espy::runtime {

struct SessionOptions;

class CostWatch {
 public:
  // The arguments must outlive it.
  CostWatch(load::Machine& machine, const program::Program& program, const SessionOptions& options, output::Sink& sink)
      : machine_(machine), program_(program), options_(options), sink_(sink) {}

  // Once the probes are attached.
  void start();
  // Does what is due; call it after each wait.
  void tick();
  // The shorter of a time to wait, in milliseconds (-1: without limit), and that until something is due.
  int shorter(int timeout_ms) const;
  void stop();
  // Shows the cost of the whole run.
  void report();

  SkippedEvents skipped(program::ProgramId id) const;
  // The share of the events that the map has seen, as programs were off for a part of the time.
  double seen_share(program::ScriptMapId map) const;
  double unavoidable_cpus() const { return keeper_ ? keeper_->unavoidable_cpus() : 0; }

 private:
  load::Machine& machine_;
  const program::Program& program_;
  const SessionOptions& options_;
  output::Sink& sink_;
  bool may_be_dear() const;
  void end_look(uint64_t now_ns);
  load::HookCosts assumed_ = load::HookCosts::assumed();
  std::optional<CostMeter> meter_;
  std::optional<BudgetKeeper> keeper_;
  int due_ms_ = -1;
  uint64_t next_report_ns_ = 0;
  uint64_t look_ends_ns_ = 0;  // not 0: only a first look at what the run costs
};

}  // namespace espy::runtime
