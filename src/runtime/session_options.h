// How a session runs its program, besides what the configuration says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "load/hook_costs.h"
#include "output/loss_report.h"
#include "runtime/event_dispatcher.h"
#include "runtime/live_run.h"
#include "runtime/record_decoder.h"
#include "runtime/resolver.h"

namespace espy::runtime {

struct SessionOptions {
  // Processes, besides the process of -p (Config::Tracee).
  struct Tracee {
    uint32_t child_pid = 0;              // -c: the run ends with this process; 0: none
    std::string child_program;           // -c: the program that it will run
    bool follows_new_only = false;       // with -p: not the processes that it has started already
    std::vector<uint32_t> unwound_pids;  // processes whose unwind tables are built before the first stack
    std::string watched_directory;       // --cgroup: the run ends when it is removed; empty: none
  };
  struct Cost {
    bool is_shown = false;       // at the end
    uint64_t interval_ns = 0;    // and while it runs; 0: not then
    load::HookCosts hooks = {};  // of this machine, if they were measured
    double budget_cpus = 0;      // --budget: what the probes may take of a CPU; 0: no limit
    bool is_checked = false;     // --check-cost: before the actions run
  };
  struct Shown {
    StackDetail stack_detail;
    TerminalText terminal;
    bool has_loss_report = false;     // at the end
    Progress* progress = nullptr;     // shows what takes long; null: nothing does. Must outlive the session
    std::vector<RunServer*> servers;  // --listen, --watch; must outlive the session
  };
  // A run whose events do not come from the kernel: of a recording, or of a test.
  struct Replay {
    std::function<Result<bool>()>
        next_event;  // produces the next event; false if there are no more, which ends the run
    // If set, next_event ends the run at a signal, too. True while its next call waits.
    std::function<bool()> is_waiting;
    // Called when no more events are taken, whatever the reason, before `end`. Returns what the recording lacks.
    std::function<output::RecordingGaps()> on_played;
  };

  Tracee tracee;
  Cost cost;
  Shown shown;
  Replay replay;
  std::function<Status()> on_set_up;    // called once the probes are attached, before a record is read: --user
  std::function<Status()> on_attached;  // called then, unless is_dry_run or the run is to end; starts the command of -c
  std::function<void()> on_hangup;      // called between records after SIGHUP, which ends the run if this is not set
  bool is_dry_run = false;              // attach, then end: no action runs
  bool is_strict = false;               // losses make the run fail
  std::string left_out_by_filter;       // a sentence: events of the traced process that its filters skip; "": none
  RecordTap* tap = nullptr;             // gets the records instead of their builtins; must outlive the session
};

}  // namespace espy::runtime
