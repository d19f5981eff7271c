// Averages, and the `top` and `divisor` of print(@map, top, divisor).
#pragma once

#include <algorithm>
#include <span>

#include "output/sink.h"

namespace espy::output {

// The last `top` entries in display order; all if `top` is 0.
inline std::span<const MapEntry> shown_entries(const MapView& map) {
  const size_t count = map.entries.size();
  const size_t shown = map.top == 0 ? count : std::min<size_t>(count, map.top);
  return std::span(map.entries).last(shown);
}

// Rounds toward zero; 0 if the divisor is above INT64_MAX. Requires that it is not 0.
int64_t quotient(int64_t value, uint64_t divisor);

// Returns 0 if the count is 0. For an unsigned total, the bits of a uint64.
int64_t average(const StatsValue& stats);

// Divides numbers, totals and the counts of hist() by `divisor`, rounding toward zero. Returns other values, also
// lhist(), unchanged, and all values if it is 0.
Value divided(const Value& value, uint64_t divisor);

}  // namespace espy::output
