// Keeping a budget: what the probes take of the CPUs, and the events that are missed meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "load/hook_costs.h"
#include "load/machine.h"
#include "program/program.h"
#include "runtime/cost_meter.h"

namespace espy::runtime {

// ---- Callers: estimates the events of programs while these are detached, process by process.
//
// Why an estimate: callers run faster while the programs are off. A count of a fifth of the time is therefore low by an
// unknown factor. The loss report marks the numbers as estimated, and `--strict` fails.
//
// A thread that calls a probed function back to back makes fewer calls while each takes a trap, and none while it waits
// for a CPU. So the rate of a process is its events divided by its CPU time while the programs were on, without the
// time of the traps. Its events while they are off are this rate times its CPU time then. The programs count their
// events by process (program::Gates::caller_tables), and the kernel has the CPU time at any moment.
//
// Times are seen from here in phases: the programs are on until `turned_off`, and off until `turned_on`.

class Callers {
 public:
  // `table`: where the programs count, in `globals`; 0: nowhere, and no caller is ever known. The other arguments must
  // outlive it.
  Callers(load::Machine& machine, const program::Program& program, uint32_t table)
      : machine_(&machine), program_(&program), table_(table) {}

  // While the programs are on: learns which processes call, so that their CPU time is known from now on.
  void look();
  // After `on_ns` with `all_events`, of which each took `event_ns`, with the trap.
  void turned_off(double on_ns, double all_events, double event_ns);
  // After `off_ns`, of which events took `traps_ns` that came before the programs were detached, or after they were
  // attached again. Returns the events of known processes since `turned_off`.
  double turned_on(double off_ns, double traps_ns);
  // Processes that `turned_on` has skipped, because nothing could measure their rate.
  double rest() const;
  // The share of the last events from processes that ended before their rate was known, or that found no place in the
  // table.
  double unknown_share() const { return all_events_ > 0 ? unknown_events_ / all_events_ : 1; }
  // The recent share of a CPU of the busiest callers, relative to the share that they could have used. 1 if they do not
  // wait for CPUs, or have more than one CPU together.
  double cpu_share(uint64_t now_ns);

 private:
  struct Caller {
    uint64_t cpu_ns = 0;       // when it was last read
    uint64_t events_seen = 0;  // then
    double last_events = 0;    // of the last time on
    double pending_ns = 0;     // CPU time off, for which no rate is known yet
    double off_share = 0;      // of a CPU, that it had while the programs were off
    // The last times on count most:
    double own_ns = 0;
    double events = 0;
    // Events by time on, where the CPU time before is not known.
    double first_rate = 0;
    kernel::SchedulingTimes times;
  };
  std::map<uint32_t, uint64_t> events_by_process() const;
  double events_of(Caller& caller, uint64_t cpu_ns, double off_ns);
  void forget_ended(double off_ns, double& events);
  void free_elements(uint32_t pid);
  void end_time_on(uint32_t pid, Caller& caller, uint64_t events, double event_ns);
  std::vector<uint32_t> busiest() const;

  load::Machine* machine_;
  const program::Program* program_;
  uint32_t table_;
  std::map<uint32_t, Caller> callers_;
  double all_events_ = 0, unknown_events_ = 0;  // of the last time on
  // For `cpu_share`:
  uint64_t shared_at_ns_ = 0;
  double run_ns_ = 0, wait_ns_ = 0, passed_ns_ = 0;
};

// ---- BudgetKeeper: keeps what the probes take of the CPUs below a limit.
//
// The cost of a program is the number of its events, from its counters, times the cost of an event, from windows of the
// meter. If the sum is above the budget, the most expensive programs run in slices: they are on for a part of each 100
// ms. The parts are chosen so that each of these takes the same share and the sum is the budget.
//
// Off means that the gate of a program is closed: it counts the event and returns. If reaching the program is the
// expensive part, such as the trap of a user probe, it is detached too. Its events are then estimated
// (runtime/budget_keeper.h).
//
// The budget is a share of a CPU. If the callers wait for CPUs that others use, it is a share of their CPU time.
// Otherwise 5% of a whole CPU would be half of the time of a program with a tenth of it.
//
// Entries and returns of calls are turned off and on together.

// What a program did not see while it was off.
struct SkippedEvents {
  uint64_t counted = 0;
  uint64_t estimated = 0;
  uint64_t sum() const { return counted + estimated; }
};

class BudgetKeeper {
 public:
  // The arguments must outlive the keeper. Requires a program with gates. `budget_cpus`: 1 is one whole CPU.
  BudgetKeeper(load::Machine& machine, const program::Program& program, CostMeter& meter, const load::HookCosts& hooks,
               double budget_cpus);

  // Once the probes are attached and the meter has started.
  void start(uint64_t now_ns);
  // Turns programs on or off when due. Returns after how many milliseconds to call it again.
  int tick(uint64_t now_ns);
  // Counts programs that are off so far. Nothing is turned on again.
  void stop(uint64_t now_ns);

  SkippedEvents skipped(program::ProgramId id) const;
  // Not 0: the share of a CPU that reaching the programs takes while they are off, if that alone exceeds the budget.
  double unavoidable_cpus() const { return unavoidable_cpus_; }
  // Why programs could not be attached again, and so stayed off.
  const Status& status() const { return status_; }

 private:
  // Programs that are turned off together.
  struct Group {
    std::vector<program::ProgramId> programs;  // entries first
    Callers callers;
    bool detaches = false;
    bool is_sliced = false;
    bool is_on = true;
    double on_cpus = 0;       // what it takes while it is on
    double off_cpus = 0;      // ... and off
    double cpu_share = 1;     // that the callers get
    double allowed_cpus = 0;  // on average, by the budget
    double detach_ns = 0;     // that turning it off has taken lately
    double credit_ns = 0;     // CPU time that it was allowed and did not take
    uint64_t switched_ns = 0;
    uint64_t off_at_ns = 0;
    bool is_measured = false;     // the last time on
    uint64_t skipped_seen = 0;    // measured events while its gates were closed
    uint64_t skipped_at_off = 0;  // ... when it was turned off
    // Values of the last time on, which ends at each look and when it is turned off:
    uint64_t on_ns = 0;
    std::vector<uint64_t> hits_at_on;  // by place of the program, and CPU
    std::vector<uint64_t> events;
    // From when it was turned on until it was turned off:
    uint64_t turned_on_ns = 0;
    std::vector<uint64_t> hits_at_turn_on;
    uint64_t slice_ns = 0;
    std::vector<uint64_t> slice_events;
    std::vector<double> mix;  // by place of the program: its part of the events lately
  };

  void add_groups();
  std::vector<uint64_t> hits_of(const Group& group) const;
  void begin_period(uint64_t now_ns);
  void begin_slice(Group& group, uint64_t now_ns) const;
  void end_slice(Group& group, uint64_t now_ns) const;
  void end_time_on(Group& group, uint64_t now_ns) const;
  void measure(Group& group, uint64_t now_ns);
  double cpus_of(const Group& group) const;
  double off_cpus_of(const Group& group) const;
  void take_from_credit(Group& group, double cpus);
  void look_at_callers(Group& group, uint64_t now_ns) const;
  double probes_ns_of(const Group& group) const;
  double ns_per_event(const Group& group) const;
  uint64_t skipped_by(const Group& group) const;
  double off_event_ns(const Group& group) const;
  static double least_on_ns(const Group& group);
  bool is_due(const Group& group) const;
  double runs_of(const Group& group, size_t place) const;
  void share_budget();
  void choose_detaching(Group& group) const;
  bool resume(const Group& group);
  void turn_on(Group& group);
  void turn_off(Group& group, uint64_t now_ns);
  void estimate(Group& group, uint64_t off_ns);
  void add_by_mix(const Group& group, double events);
  void estimate_unknown(const Group& group, uint64_t off_ns);
  void set_gates(const Group& group, uint64_t state);
  void next_slice();
  double event_ns(program::ProgramId id) const;

  load::Machine& machine_;
  const program::Program& program_;
  CostMeter& meter_;
  const load::HookCosts& hooks_;
  double budget_cpus_;
  double unavoidable_cpus_ = 0;
  Status status_;
  std::vector<Group> groups_;
  std::vector<double> estimated_;  // events, by ProgramId
  uint64_t period_begin_ns_ = 0, next_period_ns_ = 0;
  uint64_t periods_ = 0;
};

}  // namespace espy::runtime
