// How long reading debug information for the source lines of stacks may take. Internal to symbols/.
#pragma once

#include <chrono>
#include <cstdint>

namespace espy::symbols {

// The CPU time that all files together may take beyond what their sizes explain. Any user can run programs whose debug
// information takes long, and more of them. It grows again with time. The end of a run waits for source lines, so after
// it was requested there is a limit for all that they take.
class SpareTime {
 public:
  using Duration = std::chrono::nanoseconds;
  using Moment = std::chrono::steady_clock::time_point;

  Duration left(Moment now);
  void take(Duration time, Moment now);
  Duration left_at_end() const { return left_at_end_; }
  void take_at_end(Duration time) { left_at_end_ -= time; }

 private:
  static constexpr Duration kMost = std::chrono::seconds(1);

  Duration left_ = kMost;
  Moment counted_at_ = {};
  Duration left_at_end_ = std::chrono::seconds(5);
};

// The same for one file: what its size explains, and then of the spare time.
class DebugTime {
 public:
  using Duration = SpareTime::Duration;
  using Moment = SpareTime::Moment;

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
