// runtime: runs a loaded program.
//
// Session: one run of a loaded program, in one thread.
//
// In: a Machine with the program loaded, a Sink, the symbolizer. It runs begin, attaches, and drains the rings in the
// order of the records. At the end it detaches, runs end, and shows the maps and the losses. Builtins and probe types
// are called only through the function pointers of spec/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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
#include "runtime/run_parts.h"
#include "runtime/session_options.h"
#include "runtime/unwind_tables.h"
#include "spec/registry.h"
#include "symbols/symbols.h"

namespace espy::runtime {

class Session : private LiveRun {
 public:
  Session(const RunParts& parts, SessionOptions options);

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
  std::vector<uint32_t> traced_pids() const;  // the processes of -p
  Status attach_probes();
  Status finish_tap();
  void show_attached();
  void warn_of_missing_probes();
  output::RunInfo run_info();
  void end_batch();
  void look_for_hangup();
  // Handles records until the run is over.
  Status handle_events();
  Status drain_until_over();
  Status play_events();
  bool takes_kernel_stacks();
  // True if stacks may be of other processes than the process of -p, or of the target of a probe.
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
  std::optional<Signals> signals_;  // from the start of a run on; what follows it, such as the end of -c, is protected
};

}  // namespace espy::runtime
