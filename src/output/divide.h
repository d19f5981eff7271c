// Averages, and the `top` and `divisor` of print(@map, top, divisor).
#pragma once

#include <cstddef>
#include <cstdint>

#include "output/sink.h"

namespace espy::output {

// The last `top` entries of a map in display order; all if `top` is 0. An entry that an iterator has led to may be
// valid only until the iterator moves.
class ShownEntries {
 public:
  class Iterator {
   public:
    Iterator(const MapView& map, size_t index) : map_(map), index_(index) {}
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    const MapEntry& operator*();

   private:
    const MapView& map_;
    size_t index_;
    MapEntry made_;
  };

  explicit ShownEntries(const MapView& map);
  size_t size() const { return count_ - first_; }
  bool empty() const { return size() == 0; }
  Iterator begin() const { return {map_, first_}; }
  Iterator end() const { return {map_, count_}; }
  // Requires that there are as many.
  MapEntry at(size_t index) const;

 private:
  const MapView& map_;
  size_t first_ = 0, count_ = 0;
};
inline ShownEntries shown_entries(const MapView& map) { return ShownEntries(map); }

// Returns 0 if the count is 0. For an unsigned total, the bits of a uint64.
int64_t average(const StatsValue& stats);

// Divides numbers, totals and the counts of hist() by `divisor`, rounding toward zero. Returns other values, also
// lhist(), unchanged, and all values if it is 0.
Value divided(const Value& value, uint64_t divisor);

}  // namespace espy::output
