// CostReport: what the probes of a run, or of a part of it, cost the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "output/loss_report.h"

namespace espy::output {

// One program, which may serve many probes. Rates are per second.
struct ProgramCost {
  program::ProgramId id;
  std::vector<ProbeHits> probes;
  double events = 0;
  double runs = 0;                   // with those that found that the event is of no probe
  std::optional<double> ns_per_run;  // as measured; unset if no run was
  uint64_t timed_runs = 0;           // in windows
  uint64_t timed_ns = 0;             // of these, with the measuring
  std::optional<double> hook_ns;     // to reach the program
  double cpus = 0;                   // the share of a CPU: 1 is one whole
  uint64_t map_bytes = 0;            // of the maps that it uses
};

// How the times were measured, and what that cost.
struct CostMeasuring {
  bool is_by_kernel = true;  // false: by the programs' own clocks
  uint64_t windows = 0;      // the parts of the time in which runs were timed
  double seconds = 0;        // in windows
  double ns_per_run = 0;     // of a measured run: of the measuring, not of the program
  double cpus = 0;
};

struct CostReport {
  double seconds = 0;  // that it is about
  std::vector<ProgramCost> programs;
  uint64_t map_bytes = 0;                   // of all maps, with the ring
  std::vector<uint64_t> bytes_by_map = {};  // by MapId
  double tracer_cpus = 0;                   // of espy's own process
  uint64_t tracer_bytes = 0;                // its memory
  CostMeasuring measuring;
  double cpus() const;  // of the programs
};

// The report as a table; "" if there is no program.
std::string to_text(const CostReport& report);

// "0.61 %"
std::string percent_text(double share);
// "412 KiB"
std::string bytes_text(uint64_t bytes);

}  // namespace espy::output
