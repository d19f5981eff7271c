#include "base/time_budget.h"

#include <algorithm>

namespace espy {

TimeBudget::Duration TimeBudget::left(Moment now) {
  constexpr int kPartOfTime = 10;
  if (counted_at_ != Moment{}) left_ = std::min<Duration>(left_ + (now - counted_at_) / kPartOfTime, most_);
  counted_at_ = now;
  return left_;
}

void TimeBudget::take(Duration time, Moment now) { left_ = std::max(left(now) - time, Duration::zero()); }

void TimeBudget::lower(Duration most) {
  most_ = std::min(most_, most);
  left_ = std::min(left_, most_);
}

}  // namespace espy
