// The account of a run: how often each probe fired, and what was not done that should have been.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace espy::output {

constexpr size_t kLossKinds = static_cast<size_t>(program::LossKind::kCount);
using Losses = std::array<uint64_t, kLossKinds>;  // by LossKind

// What a loss of this kind is called: a column's head and what JSON says ("lost records", "lost_records"), and the unit
// of a sentence ("12 records were lost").
struct LossName {
  std::string_view column;
  std::string_view key;
  std::string_view sentence;
};
const LossName& name_of(program::LossKind kind);

struct ProbeHits {
  std::string name;  // in full
  uint64_t fired = 0;
};

// The probes that one program serves. It loses for all of them: which of them it was, nobody knows.
struct ActionReport {
  std::vector<ProbeHits> probes;
  Losses losses = {};
  uint64_t skipped = 0;         // of the missed: what fired within a probe on the same CPU
  bool is_missed_known = true;  // else the kernel may have skipped runs, and does not say so
  uint64_t fired() const;
};

// A function that a wildcard matches and nobody may probe.
struct SkippedProbe {
  std::string name;
  std::string reason;
};

struct LossReport {
  std::vector<ActionReport> actions;
  std::vector<SkippedProbe> skipped_probes;
  Losses totals = {};  // of the actions, and of what is nobody's, as the cut strings of maps
  // "" where all that was shown is exact; else the first reason why not, a sentence.
  std::string inexact() const;
  // "" where the kernel counts all that it skips; else a sentence that says of which probes it does not. Samples of the
  // clock are samples: those are not meant.
  std::string unknown() const;
};

// The table for people; "" where there is no action.
std::string to_text(const LossReport& loss_report);

}  // namespace espy::output
