// LossReport: how often each probe of a run fired, and which effects of the script are missing or incomplete.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace espy::output {

constexpr size_t kLossKinds = static_cast<size_t>(program::LossKind::kCount);
using Losses = std::array<uint64_t, kLossKinds>;  // by LossKind

// Returns a sentence about `count` things: "3 stacks lost" for "stack(s) lost", "1 process ended" for "process(es)
// ended".
std::string counted(uint64_t count, std::string_view text);

// The names of a kind of loss: the title of a column ("lost records"), a JSON key ("lost_records"), and a sentence for
// counted() ("record(s) lost").
struct LossName {
  std::string_view column;
  std::string_view key;
  std::string_view sentence;
};
const LossName& name_of(program::LossKind kind);

struct ProbeHits {
  std::string name;  // in full
  uint64_t hits = 0;
};

// The probes of one program, and its losses, which are counted for all of them together.
struct ActionReport {
  std::vector<ProbeHits> probes;
  Losses losses = {};
  uint64_t skipped = 0;             // of the missed runs, those because a probe fired within a probe on the same CPU
  uint64_t skipped_calls = 0;       // ... and those because the kernel did not follow more calls to their return
  bool is_missed_known = true;      // false: the kernel may have skipped runs, which it does not count
  bool is_slice_estimated = false;  // the events while it was off to keep a budget, because it was detached
  uint64_t hits() const;
};

// A function that a wildcard matches and that cannot be probed.
struct SkippedProbe {
  std::string name;
  std::string reason;
};

// What became of the trees of span_hold().
struct TreeCounts {
  uint64_t begun = 0, shown = 0, dropped = 0;
  uint64_t left = 0;  // whose root did not return: it threw an exception, or its thread ended
};

uint64_t in_progress(const TreeCounts& trees);

// What the recording lacks that a run has played.
struct RecordingGaps {
  uint64_t lost_records = 0;           // while it was made
  std::vector<std::string> sentences;  // about these, and about damaged or missing parts
};

struct LossReport {
  std::vector<ActionReport> actions;
  std::optional<TreeCounts> trees;
  std::vector<SkippedProbe> skipped_probes;
  std::vector<std::string> gaps;          // RecordingGaps::sentences
  std::vector<std::string> file_changes;  // of files that are probed, which were replaced or written to: sentences
  std::vector<std::string> others;        // further reasons why not all is exact: sentences
  // Addresses without names, because their process had code of several files there, one after the other. A key with one
  // can stand for several functions.
  uint64_t uncertain_addresses = 0;
  Losses totals = {};  // of all actions, and of no action, such as truncated strings of maps
  // Returns "" if everything that was shown is exact, otherwise a sentence with the first reason why not.
  std::string inexact() const;
  // Returns a sentence for each reason why not everything is exact, such as "16 memory reads failed". Omits lost
  // records, because a recording counts them where they are missing.
  std::vector<std::string> reasons_beside_records() const;
  std::string uncertain_sentence() const;  // about uncertain_addresses
  // Returns "" if the kernel counts all runs that it skips, otherwise a sentence that names probes of which it does
  // not. Ignores profile and interval, which are samples anyway.
  std::string unknown() const;
};

// The report as a table; "" if there is no action.
std::string to_text(const LossReport& loss_report);

// ---- CostReport: what the probes of a run, or of a part of it, cost the machine.

// One program, which may serve many probes. Rates are per second.
struct ProgramCost {
  program::ProgramId id;
  std::vector<ProbeHits> probes;
  double events = 0;
  double runs = 0;                   // including runs for an event of no probe
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
