// Values with their unit: 1.5 us, 3.2 KiB. Text only; other formats have plain numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "output/format.h"
#include "output/sink.h"
#include "types/type.h"

namespace espy::output {

// Returns a number in the unit that suits its size, with up to three decimals: "1.5 us" of 1500 nanoseconds, "2 MiB",
// "90 s". The plain number for kNone.
std::string quantity_text(int64_t number, types::Unit unit);
std::string quantity_text(uint64_t number, types::Unit unit);

// Returns the unit in which the values of a map are shown: none if the configuration does not ask for units, for
// counts, and for numbers that print() divides.
types::Unit unit_for(const MapView& map, const TextStyle& style);

// The same as `to_text`, with numbers, averages and totals, and the bounds of histograms in `unit`.
std::string to_text(const Value& value, types::Unit unit, const TextStyle& style);
void append_text(std::string& out, const Value& value, types::Unit unit, const TextStyle& style);

// ---- Averages, and the `top` and `divisor` of print(@map, top, divisor).

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
