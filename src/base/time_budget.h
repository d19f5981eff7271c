// A bound on the time that work takes whose amount others choose.
#pragma once

#include <chrono>

namespace espy {

// Begins with `most`. What was taken grows again by a tenth of the time that passes, up to `most`: so others can keep
// espy from its own work for at most that part of the time, and an honest run that lasts gets an answer again.
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

}  // namespace espy
