// Leaves C code that takes too long. Internal to symbols/.
#pragma once

#include <signal.h>
#include <time.h>

#include <chrono>

namespace espy::symbols {

// Calls a function, from a signal handler (SIGVTALRM), once this thread has taken some CPU time, unless the object is
// destroyed before. The clock ticks every few milliseconds. The function may leave by longjmp(3), as this thread
// handles no other signal meanwhile: it would leave their handlers too. One object at a time for each thread.
class CpuAlarm {
 public:
  CpuAlarm(std::chrono::nanoseconds after, void (*ring)());
  ~CpuAlarm();
  CpuAlarm(const CpuAlarm&) = delete;
  CpuAlarm& operator=(const CpuAlarm&) = delete;

  // False if there is no timer, as they are limited: it never rings.
  bool is_set() const { return is_set_; }

 private:
  timer_t timer_ = {};
  bool is_set_ = false;
  sigset_t mask_before_ = {};
};

}  // namespace espy::symbols
