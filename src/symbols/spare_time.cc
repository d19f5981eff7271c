#include "symbols/spare_time.h"

#include <algorithm>

namespace espy::symbols {

namespace {

// Reading all of the debug information of a program takes 5 to 6 ns for each byte of its file (measured: C, C++), and
// up to four times as much if it is compressed. Slow machines take several times as long.
constexpr TimeBudget::Duration kPerByte(64);
constexpr TimeBudget::Duration kPerFile = std::chrono::milliseconds(2);

TimeBudget::Duration explained_by(uint64_t disk_bytes) {
  return kPerFile + kPerByte * static_cast<int64_t>(std::min<uint64_t>(disk_bytes, uint64_t{1} << 40));
}

}  // namespace

DebugTime::Duration DebugTime::left(uint64_t disk_bytes, Moment now) const {
  const Duration most = explained_by(disk_bytes) - taken_ + from_spare_ + spare_.budget.left(now);
  return is_at_end_() ? std::min(most, spare_.left_at_end) : most;
}

void DebugTime::take(Duration time, uint64_t disk_bytes, Moment now) {
  if (is_at_end_()) spare_.left_at_end -= time;
  taken_ += time;
  const Duration more = taken_ - explained_by(disk_bytes) - from_spare_;
  if (more <= Duration::zero()) return;
  from_spare_ += more;
  spare_.budget.take(more, now);
}

}  // namespace espy::symbols
