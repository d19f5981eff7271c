// CostMeter: measures what the programs of a run cost.
//
// The kernel can count the runs of programs and their time, which makes each run of each program of the machine slower.
// So espy requests it for a window of some milliseconds now and then. The hit counters have the exact number of events.
// Windows show the time of a run, and the runs for an event, because the program of a system call also runs at all
// others. Where the kernel does not measure, programs read the clock themselves in the same windows (lower/lower.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "load/hook_costs.h"
#include "load/machine.h"
#include "output/loss_report.h"
#include "output/sink.h"
#include "program/program.h"

namespace espy::runtime {

class CostMeter {
 public:
  // The arguments must outlive the meter. Requires that the program counts hits.
  CostMeter(load::Machine& machine, const program::Program& program, const load::HookCosts& hooks);

  // Begins when the probes are attached, with a window.
  void start(uint64_t now_ns);
  // Opens or closes a window if it is time. Returns after how many milliseconds to call it again.
  int tick(uint64_t now_ns);
  // From now on the caller opens and closes the windows.
  void let_caller_open() { is_driven_ = true; }
  void open_window(uint64_t now_ns);
  void close_window(uint64_t now_ns);
  // Ends the window and the measurement.
  void stop(uint64_t now_ns);

  // Sums since the start.
  struct Counts {
    uint64_t at_ns = 0;
    uint64_t tracer_ns = 0;                 // CPU time of this process
    std::vector<uint64_t> hits;             // by ProbeId
    std::vector<load::Machine::Runs> runs;  // in windows, by ProgramId
    std::vector<uint64_t> window_hits;      // by ProgramId
    uint64_t window_ns = 0;
    uint64_t windows = 0;
  };
  const Counts& at_start() const { return first_; }

  // What there was since `from`, which becomes the present.
  output::CostReport report_since(Counts& from, uint64_t now_ns);
  // The cost of the whole run, once it is stopped.
  output::CostReport report() const;

  // Results of the last windows for a program, without the hook: the time of runs for an event, and the share of a CPU.
  // Some programs also run without an event of theirs.
  struct Recent {
    double events = 0, runs = 0;  // in these windows
    double ns = 0;                // of all runs
    double window_ns = 0;
  };
  const Recent& recent(program::ProgramId id) const { return recent_[id.index]; }

 private:
  Counts counts(uint64_t now_ns) const;
  void read_map_bytes();
  load::Machine::Runs runs_so_far(program::ProgramId id) const;
  std::vector<uint64_t> hits_by_program() const;
  void switch_timing(bool on);
  void add_window(Counts& to, uint64_t now_ns) const;
  output::CostReport report_of(const Counts& from, const Counts& to) const;
  output::ProgramCost cost_of(program::ProgramId id, const Counts& from, const Counts& to, double seconds) const;
  void add_probes(output::ProgramCost& cost, program::ProgramId id, const Counts& from, const Counts& to) const;
  uint64_t map_bytes(program::ProgramId id) const;

  load::Machine& machine_;
  const program::Program& program_;
  const load::HookCosts& hooks_;
  bool is_by_kernel_ = false;
  uint64_t timing_ns_ = 0;  // the measured time of a program that does nothing
  bool is_open_ = false;
  bool is_driven_ = false;      // by the caller
  std::vector<Recent> recent_;  // by ProgramId
  uint64_t next_ns_ = 0;        // when the window opens, or closes
  uint64_t opened_ns_ = 0;
  std::vector<load::Machine::Runs> runs_at_open_;
  std::vector<uint64_t> hits_at_open_;
  Counts closed_;  // of closed windows
  Counts first_, end_;
  std::vector<uint64_t> map_bytes_;  // by MapId, when they were last read
};

// ---- What probes will cost, by how often they fire, before their actions run.

// Above this share of a CPU, espy asks or warns the user.
constexpr double kDearCpus = 0.1;

// Closes the gates of all programs. Requires that the program has gates, and call it before the probes are attached.
void close_gates(load::Machine& machine, const program::Program& program);

// Counts events for 20 ms, and opens the gates. If the actions will take more than kDearCpus, says so, and fails unless
// it is accepted or a user at the terminal says yes.
Status check_cost(load::Machine& machine, const program::Program& program, const load::HookCosts& hooks,
                  bool is_accepted, output::Sink& sink);

}  // namespace espy::runtime
