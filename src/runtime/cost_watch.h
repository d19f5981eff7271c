// CostWatch: the part of a session that measures what its probes cost, shows it, and keeps it within a budget, on
// request.
#pragma once

#include <cstdint>
#include <optional>

#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/budget_keeper.h"
#include "runtime/cost_meter.h"
#include "runtime/live_run.h"
#include "runtime/run_parts.h"
#include "spec/config.h"

namespace espy::runtime {

struct SessionOptions;

class CostWatch {
 public:
  // `options` must outlive it.
  CostWatch(const RunParts& parts, const SessionOptions& options)
      : machine_(parts.machine), program_(parts.program), config_(parts.config), options_(options), sink_(parts.sink) {}

  // Once the probes are attached.
  void start();
  // Does the due work; call it after each wait.
  void tick();
  // The shorter of a time to wait, in milliseconds (-1: without limit), and that until something is due.
  int shorter(int timeout_ms) const;
  void stop();
  // Shows the cost of the whole run.
  void report();
  // What LiveRun::cost gives.
  const RunCost& look();

  SkippedEvents skipped(program::ProgramId id) const;
  // The share of the events that the map has seen, as programs were off for a part of the time.
  double seen_share(program::ScriptMapId map) const;
  double unavoidable_cpus() const { return keeper_ ? keeper_->unavoidable_cpus() : 0; }

 private:
  load::Machine& machine_;
  const program::Program& program_;
  const spec::Config& config_;
  const SessionOptions& options_;
  output::Sink& sink_;
  bool may_be_dear() const;
  void begin_look(uint64_t now_ns, uint64_t ns);
  void begin_warning_look(uint64_t now_ns);
  void end_look(uint64_t now_ns);
  void tend_looks(uint64_t now_ns);
  // Events since the warning look began. Returns whether it was dear.
  bool warns_if_dear(uint64_t now_ns);
  load::HookCosts assumed_ = load::HookCosts::assumed();
  std::optional<CostMeter> meter_;
  std::optional<BudgetKeeper> keeper_;
  int due_ms_ = -1;
  uint64_t next_report_ns_ = 0;
  bool only_looks_ = false;       // the meter measures on request, for a moment
  bool is_served_ = false;        // a server shows the cost: see RunServer::shows_cost
  uint64_t look_ends_ns_ = 0;     // not 0: it measures until then
  bool is_warning_look_ = false;  // it must warn of expensive probes
  size_t warning_looks_ = 0;      // begun so far
  uint64_t next_look_ns_ = 0;     // not 0: then the next of them begins
  bool is_stopped_ = false;
  // Values at the last report of --cost=INTERVAL, the last look of a server, and the start of a warning look.
  CostMeter::Counts reported_, served_, looked_;
  RunCost cost_;
};

}  // namespace espy::runtime
