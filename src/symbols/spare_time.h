// Limits for C code that reads files of others: it is left if it takes too long. Internal to symbols/.
#pragma once

#include <signal.h>
#include <time.h>

#include <chrono>
#include <cstdint>

#include "base/limits.h"

namespace espy::symbols {

// ---- Leaves C code that takes too long. Internal to symbols/.

// Calls a function, from a signal handler (SIGVTALRM), once this thread has taken some CPU time, unless the object is
// destroyed before. The clock ticks every few milliseconds. The function may leave by longjmp(3), because this thread
// handles no other signal meanwhile: it would leave their handlers too. One object at a time for each thread.
class CpuAlarm {
 public:
  CpuAlarm(std::chrono::nanoseconds after, void (*ring)());
  ~CpuAlarm();
  CpuAlarm(const CpuAlarm&) = delete;
  CpuAlarm& operator=(const CpuAlarm&) = delete;

  // False if there is no timer, because they are limited: it never rings.
  bool is_set() const { return is_set_; }

 private:
  timer_t timer_ = {};
  bool is_set_ = false;
  sigset_t mask_before_ = {};
};

// ---- How long reading debug information for the source lines of stacks may take. Internal to symbols/.

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
