// Session: one run of a loaded program, in one thread.
//
// In: a Machine with the program loaded, a Sink, the symbolizer. It runs begin, attaches, drains the rings in the order
// of the records, and at the end detaches, runs end, and shows the maps and what was lost. Builtins and probe types are
// called only through the function pointers of spec/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "load/hook_costs.h"
#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/cost_watch.h"
#include "runtime/event_dispatcher.h"
#include "runtime/handler_context.h"
#include "runtime/live_run.h"
#include "runtime/losses.h"
#include "runtime/probe_runner.h"
#include "runtime/process_watch.h"
#include "runtime/run_control.h"
#include "runtime/unwind_tables.h"
#include "spec/registry.h"
#include "symbols/symbols.h"

namespace espy::runtime {

struct SessionOptions {
  uint32_t child_pid = 0;               // -c: the run ends with this process; 0: none
  std::string child_program;            // -c: the program that it will run
  std::optional<uint32_t> watched_pid;  // -p: the run ends with this process
  bool follows_new_only = false;        // with -p: not the processes that it has started already
  std::vector<uint32_t> unwound_pids;   // processes whose unwind tables are built before the first stack
  std::string watched_directory;        // --cgroup: the run ends when it is removed; empty: none
  std::function<Status()> on_set_up;    // called once the probes are attached, before a record is read: --user
  std::function<Status()> on_attached;  // called then, unless is_dry_run or the run is to end; starts the command of -c
  bool is_dry_run = false;              // attach, then end: no action runs
  bool hides_warnings = false;          // those of warnf()
  StackDetail stack_detail;
  TerminalText terminal;
  bool shows_loss_report = false;   // at the end
  bool is_strict = false;           // losses make the run fail
  std::string left_out_by_filter;   // a sentence: events of the traced process that its filters leave out; "": none
  bool shows_cost = false;          // at the end
  uint64_t cost_interval_ns = 0;    // and while it runs; 0: not then
  load::HookCosts hook_costs = {};  // of this machine, if they were measured
  double budget_cpus = 0;           // --budget: what the probes may take of a CPU; 0: no limit
  bool checks_cost = false;         // --check-cost: before the actions run
  Progress* progress = nullptr;     // shows what takes long; null: nothing does. Must outlive the session
  std::vector<RunServer*> servers;  // --listen, --watch; must outlive the session
  RecordTap* tap = nullptr;         // gets the records instead of their builtins; must outlive the session
  // Simulator only: produces the next event; false if there are no more, which ends the run.
  std::function<Result<bool>()> next_event;
  // If set, next_event ends the run at a signal, too. True while its next call waits.
  std::function<bool()> is_waiting;
  // Called when no more events are taken, whatever the reason, before `end`. Returns what the recording lacks.
  std::function<output::RecordingGaps()> on_played;
};

class Session : private LiveRun {
 public:
  // The arguments must outlive the session.
  Session(load::Machine& machine, const program::Program& program, const types::Types& types,
          const source::Sources& sources, const spec::Registry& registry, const spec::Config& config,
          output::Sink& sink, output::Writer& out, symbols::Symbolizer& symbols, SessionOptions options);

  // Runs the program from begin to the last map, or its tests and benchmarks where the configuration says so. Returns
  // espy's exit status; fails if a program cannot be attached or run, or output cannot be written. What fails once the
  // probes are attached and set up ends the run as exit() does, with `end`, the maps and the losses; before, what begin
  // has printed is shown.
  Result<int> run();

 private:
  Result<output::MapView> read_map(program::ScriptMapId map) override { return context_.read_map(map); }
  output::LossReport losses() override {
    probed_files_.look_sometimes();
    return make_loss_report(machine_, program_, user_losses());
  }
  const RunCost& cost() override { return costs_.look(); }

  Result<int> run_tests();
  Result<int> run_script();
  // Builds the unwind tables that are needed for certain or probably, before the first stack.
  void start_unwinding();
  Status attach_followers();
  Status attach_probes();
  Status finish_tap();
  void show_attached();
  void warn_of_missing_probes();
  output::RunInfo run_info();
  void end_batch();
  // Handles records until the run is over.
  Status handle_events();
  Status drain_until_over();
  Status play_events();
  bool takes_kernel_stacks();
  // True if stacks may be of other processes than those that -p, or the target of a probe, tells.
  bool unwinds_any_process() const;
  Status finish();
  Status print_maps();
  UserLosses user_losses();
  bool report_losses();

  load::Machine& machine_;
  const program::Program& program_;
  const spec::Config& config_;
  output::Sink& sink_;
  output::Writer& out_;
  SessionOptions options_;
  RunControl control_;
  UnwindTables unwind_tables_;
  UnwoundStacks unwound_stacks_;
  ProcessWatch processes_;
  HandlerContext context_;
  EventDispatcher events_;
  ProbeRunner probes_;
  CostWatch costs_;
  ProbedFiles probed_files_{program_};
  output::RecordingGaps gaps_;
  std::optional<Signals> signals_;  // from the begin of a run on; what follows it, such as the end of -c, is protected
};

}  // namespace espy::runtime
