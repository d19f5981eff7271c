// A bound on the CPU time that a part of the work takes: structures of a small file of others can refer to each other
// so that reading them takes minutes.
#pragma once

#include <chrono>

namespace espy {

// Returns how much CPU time this thread has taken. A system call.
std::chrono::nanoseconds thread_cpu_time();

// Thrown by TimeLimit::check().
struct TookTooLong {};

// While it lives, this thread should not take more than `most` of CPU time: loops call check(). Within another one, the
// sooner end counts. CPU time, as a busy machine does not make the work more.
class TimeLimit {
 public:
  using Duration = std::chrono::nanoseconds;

  explicit TimeLimit(Duration most);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // Throws TookTooLong if more was taken than a TimeLimit allows. Takes a nanosecond, as it looks at a clock on some of
  // the calls only. Must not be called by functions that are called by C code.
  static void check() {
    if (current_ != nullptr && --current_->calls_left_ <= 0) current_->look();
  }

 private:
  void look();

  static thread_local TimeLimit* current_;
  TimeLimit* outer_;
  int calls_left_ = 0;                             // until it looks at a clock
  Duration end_;                                   // as a thread_cpu_time()
  std::chrono::steady_clock::time_point look_at_;  // earlier the CPU time cannot have passed
};

}  // namespace espy
