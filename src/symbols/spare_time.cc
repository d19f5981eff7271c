#include "symbols/spare_time.h"

#include <algorithm>

namespace espy::symbols {

namespace {

// Reading all of the debug information of a program takes 5 to 6 ns for each byte of its file (measured: C, C++), and
// up to four times as much if it is compressed. Slow machines take several times as long.
constexpr SpareTime::Duration kPerByte(64);
constexpr SpareTime::Duration kPerFile = std::chrono::milliseconds(2);
constexpr int kPartOfTime = 10;

SpareTime::Duration explained_by(uint64_t disk_bytes) {
  return kPerFile + kPerByte * static_cast<int64_t>(std::min<uint64_t>(disk_bytes, uint64_t{1} << 40));
}

}  // namespace

SpareTime::Duration SpareTime::left(Moment now) {
  if (counted_at_ != Moment{}) left_ = std::min<Duration>(left_ + (now - counted_at_) / kPartOfTime, kMost);
  counted_at_ = now;
  return left_;
}

void SpareTime::take(Duration time, Moment now) { left_ = std::max(left(now) - time, Duration::zero()); }

DebugTime::Duration DebugTime::left(uint64_t disk_bytes, Moment now) const {
  const Duration most = explained_by(disk_bytes) - taken_ + from_spare_ + spare_.left(now);
  return is_at_end_() ? std::min(most, spare_.left_at_end()) : most;
}

void DebugTime::take(Duration time, uint64_t disk_bytes, Moment now) {
  if (is_at_end_()) spare_.take_at_end(time);
  taken_ += time;
  const Duration more = taken_ - explained_by(disk_bytes) - from_spare_;
  if (more <= Duration::zero()) return;
  from_spare_ += more;
  spare_.take(more, now);
}

}  // namespace espy::symbols
