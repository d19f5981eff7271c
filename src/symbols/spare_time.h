// How long reading debug information for the source lines of stacks may take. Internal to symbols/.
#pragma once

#include <chrono>
#include <cstdint>

namespace espy::symbols {

// The CPU time that all files together may take beyond what their sizes explain. Any user can run programs whose debug
// information takes long, and more of them; the end of a run waits for their source lines. It grows again with time.
class SpareTime {
 public:
  using Duration = std::chrono::nanoseconds;
  using Moment = std::chrono::steady_clock::time_point;

  // Negative if more was taken than there was.
  Duration left(Moment now);
  void take(Duration time, Moment now);

 private:
  static constexpr Duration kMost = std::chrono::seconds(1);

  Duration left_ = kMost;
  Moment counted_at_ = {};
};

// The same for one file: what its size explains, and then of the spare time.
class DebugTime {
 public:
  using Duration = SpareTime::Duration;
  using Moment = SpareTime::Moment;

  explicit DebugTime(SpareTime& spare) : spare_(spare) {}

  // Returns how long the debug information may be read now; `disk_bytes` are the sizes of its files, without holes.
  // Not positive: it should not be read.
  Duration left(uint64_t disk_bytes, Moment now) const;
  void take(Duration time, uint64_t disk_bytes, Moment now);

 private:
  SpareTime& spare_;
  Duration taken_ = {};
  Duration from_spare_ = {};  // of `taken_`
};

}  // namespace espy::symbols
