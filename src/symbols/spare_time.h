// How long reading debug information for the source lines of stacks may take. Internal to symbols/.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time_budget.h"

namespace espy::symbols {

// The CPU time that all files together may take beyond what their sizes explain. Any user can run programs whose debug
// information takes long, and more of them. The end of a run waits for source lines, so after it was requested there is
// a limit for all that they take.
struct SpareTime {
  TimeBudget budget{std::chrono::seconds(1)};
  TimeBudget::Duration left_at_end = std::chrono::seconds(5);
};

// The same for one file: what its size explains, and then of the spare time.
class DebugTime {
 public:
  using Duration = TimeBudget::Duration;
  using Moment = TimeBudget::Moment;

  // `is_at_end`: whether the end was requested.
  DebugTime(SpareTime& spare, bool (*is_at_end)()) : spare_(spare), is_at_end_(is_at_end) {}

  // Returns how long the debug information may be read now; `disk_bytes` are the sizes of its files, without holes.
  // Not positive: it should not be read.
  Duration left(uint64_t disk_bytes, Moment now) const;
  void take(Duration time, uint64_t disk_bytes, Moment now);

 private:
  SpareTime& spare_;
  bool (*is_at_end_)();
  Duration taken_ = {};
  Duration from_spare_ = {};  // of `taken_`
};

}  // namespace espy::symbols
