// Limits for work whose amount others choose: time, CPU time and memory; and what espy does when memory runs out.
#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#include "base/result.h"

namespace espy {

// ---- A bound on the time that work takes whose amount others choose.

// Begins with `most`. The budget grows again by a tenth of the time that passes, up to `most`. So others can keep espy
// from its own work for at most this part of the time, and a long honest run gets an answer again.
class TimeBudget {
 public:
  using Duration = std::chrono::nanoseconds;
  using Moment = std::chrono::steady_clock::time_point;

  explicit TimeBudget(Duration most) : most_(most), left_(most) {}

  // Returns how much may still be taken, not less than zero.
  Duration left(Moment now);
  void take(Duration time, Moment now);
  // From now on it is not more than `most`.
  void lower(Duration most);

 private:
  Duration most_;
  Duration left_;
  Moment counted_at_ = {};
};

// ---- A bound on the CPU time of a part of the work. Structures in a small file of others can refer to each other so
// that reading them takes minutes.

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

  // Throws TookTooLong if more was taken than a TimeLimit allows. Takes a nanosecond, because only some calls look at a
  // clock. Must not be called by functions that are called by C code.
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

// ---- A bound on the memory of a part of the work. Libraries that read files of others can take many times the size of
// a small, compressed file.

// Returns the size of the process's writable private memory in bytes; 0 if unknown, without procfs.
uint64_t data_bytes();

// While it lives, the process cannot take more than `more_bytes` in addition (RLIMIT_DATA, getrlimit(2)): malloc() then
// fails, and `new` throws std::bad_alloc. Without effect where there is no procfs, and with sanitizers, whose
// allocators end the process.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t more_bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  uint64_t taken_bytes() const;  // since the limit was set
  static bool is_supported();

 private:
  uint64_t begin_bytes_;
  bool is_set_ = false;
  rlimit earlier_ = {};
};

// ---- Memory that runs out: std::bad_alloc, the only exception that espy catches. It is caught where a part of the
// work ends and the rest can continue without it: a record, a map, a stage of a run, the whole program.

// The error of work that had to be given up. Its text is short enough to need no memory itself.
inline tl::unexpected<Error> fail_out_of_memory() { return fail("out of memory", ENOMEM); }

// Returns what `part` returns, a Status or a Result; fails with ENOMEM if memory runs out in it.
template <class Part>
auto catch_out_of_memory(Part&& part) -> decltype(part()) {
  try {
    return std::forward<Part>(part)();
  } catch (const std::bad_alloc&) {
    return fail_out_of_memory();
  }
}

// Writes the error and its hint to stderr. Does not allocate.
void report_out_of_memory();

// Makes the program end with that report where nothing catches std::bad_alloc, such as in a destructor.
void report_uncaught_out_of_memory();

}  // namespace espy
