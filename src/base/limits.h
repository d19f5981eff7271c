// Limits for work whose amount others choose: time, CPU time and memory; and what espy does when memory runs out.
//
// WorkBudget bounds what a run does, TimeLimit and MemoryLimit bound one piece of it. What one file may have is a
// number that its reader compares (`kMax...`).
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#include "base/result.h"

namespace espy {

// ---- A bound on work whose amount others choose, over a run.

// How much work there may still be, in a unit such as nanoseconds or bytes. It begins with `most`. It grows
// again by a rate, up to `most`. So others can keep espy from its own work for a part of the time only, and a long
// honest run gets an answer again.
template <class Amount>
class WorkBudget {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // Without a rate, it does not grow again.
  explicit WorkBudget(Amount most, Amount per_second = {}) : most_(most), left_(most), per_second_(per_second) {}

  // Returns how much may still be taken, not less than zero.
  Amount left(Moment now = Moment::clock::now()) {
    if (left_ == most_ || grown_at_ == Moment{}) grown_at_ = now;
    const std::chrono::duration<double> passed = now - grown_at_;
    const Amount grown = std::min(share(per_second_, passed.count()), most_);
    if (grown > Amount{}) grown_at_ = now;
    return left_ = std::min(left_ + grown, most_);
  }
  void take(Amount amount, Moment now = Moment::clock::now()) { left_ = std::max(left(now) - amount, Amount{}); }
  // Takes the amount if so much is left; returns whether it is.
  bool take_if_left(Amount amount) {
    const bool is_left = amount <= left();
    if (is_left) take(amount);
    return is_left;
  }
  // From now on it is not more than `most`.
  void lower(Amount most) {
    most_ = std::min(most_, most);
    left_ = std::min(left_, most_);
  }

 private:
  static int64_t share(int64_t of, double part) { return static_cast<int64_t>(static_cast<double>(of) * part); }
  static std::chrono::nanoseconds share(std::chrono::nanoseconds of, double part) {
    return std::chrono::nanoseconds(share(of.count(), part));
  }

  Amount most_, left_, per_second_;
  Moment grown_at_ = {};  // where `left_` is less than `most_`: up to then it has grown
};

// Time that grows again by a tenth of the time that passes.
class TimeBudget : public WorkBudget<std::chrono::nanoseconds> {
 public:
  explicit TimeBudget(std::chrono::nanoseconds most) : WorkBudget(most, std::chrono::milliseconds(100)) {}
};

// ---- A bound on the CPU time of a part of the work. Structures in a small file of others can refer to each other so
// that reading them takes minutes.

// Returns how much CPU time this thread has taken. A system call.
std::chrono::nanoseconds thread_cpu_time();

// Thrown by TimeLimit::check(). It is an exception because the loops that call check() are many calls below the
// function that gives up. Otherwise readers of DWARF would return an error on each level, and could keep a part of a
// table as the whole.
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
