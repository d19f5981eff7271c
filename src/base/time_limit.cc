#include "base/time_limit.h"

#include <ctime>

namespace espy {

namespace {

constexpr int kCallsPerLook = 16;

}  // namespace

std::chrono::nanoseconds thread_cpu_time() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

thread_local TimeLimit* TimeLimit::current_ = nullptr;

TimeLimit::TimeLimit(Duration most)
    : outer_(current_), end_(thread_cpu_time() + most), look_at_(std::chrono::steady_clock::now() + most) {
  if (outer_ != nullptr && outer_->end_ < end_) {
    end_ = outer_->end_;
    look_at_ = outer_->look_at_;
  }
  current_ = this;
}

TimeLimit::~TimeLimit() { current_ = outer_; }

void TimeLimit::look() {
  calls_left_ = kCallsPerLook;
  const auto now = std::chrono::steady_clock::now();
  if (now < look_at_) return;
  const Duration left = end_ - thread_cpu_time();
  if (left <= Duration::zero()) throw TookTooLong();
  look_at_ = now + left;
}

}  // namespace espy
