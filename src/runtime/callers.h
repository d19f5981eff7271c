// Callers: estimates the events of programs while these are detached, process by process.
//
// A thread that calls a probed function back to back makes fewer calls while each takes a trap, and none while it waits
// for a CPU. So the rate of a process is its events by the CPU time that it had while the programs were on, less that
// of the traps; and what it does while they are off is this rate times the CPU time that it has then. The programs
// count their events by process (program::Gates::caller_tables), and the kernel tells the CPU time at any moment.
//
// Times are seen from here in phases: the programs are on until `turned_off`, and off until `turned_on`.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "load/machine.h"
#include "program/program.h"

namespace espy::runtime {

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
  // Those that `turned_on` has left out, as there was nothing to measure their rate with.
  double rest() const;
  // Of the events of the last time on, the share of processes that have ended before their rate was known, or that
  // found no place in the table.
  double unknown_share() const { return all_events_ > 0 ? unknown_events_ / all_events_ : 1; }
  // The share of a CPU that those that call most have got lately, of what they could have used. 1 if they do not wait
  // for CPUs, or have more than one CPU together.
  double cpu_share(uint64_t now_ns);

 private:
  struct Caller {
    uint64_t cpu_ns = 0;       // when it was last read
    uint64_t events_seen = 0;  // then
    double last_events = 0;    // of the last time on
    double pending_ns = 0;     // CPU time off, for which no rate is known yet
    double off_share = 0;      // of a CPU, that it had while the programs were off
    // Of the times on, the last ones most:
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

}  // namespace espy::runtime
