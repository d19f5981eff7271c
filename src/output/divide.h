// Averages; and print(@map, top, divisor): what of a map is shown, and in which unit.
#pragma once

#include <algorithm>
#include <span>

#include "output/sink.h"

namespace espy::output {

// The last `top` entries of the display order, or all.
inline std::span<const MapEntry> shown_entries(const MapView& map) {
  const size_t count = map.entries.size();
  const size_t shown = map.top == 0 ? count : std::min<size_t>(count, map.top);
  return std::span(map.entries).last(shown);
}

// Toward zero. A divisor above int64's range leaves nothing of any signed value.
int64_t quotient(int64_t value, uint64_t divisor);

// Of nothing, 0. The bits of a uint64 if the total is one.
int64_t average(const StatsValue& stats);

// A number, an average, a total or a histogram's counts by `divisor`, toward zero; others as they are, and all if it is
// 0. An lhist's counts stay.
Value divided(const Value& value, uint64_t divisor);

}  // namespace espy::output
