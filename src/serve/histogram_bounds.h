// Histogram: hist() and lhist() with the bounds that a scraper of metrics reads: the largest value of each bucket.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "output/value.h"

namespace espy::serve {

class Histogram {
 public:
  // Empty for other values. `value` must outlive the histogram.
  explicit Histogram(const output::Value& value);

  size_t size() const { return buckets_ != nullptr ? buckets_->size() : 0; }
  uint64_t count(size_t index) const { return (*buckets_)[index]; }
  // The largest value of a bucket; infinite for the last one.
  double upper(size_t index) const;
  // By the middle of each bucket; below and above the range of lhist(), by its ends. nullopt if a value may be
  // negative.
  std::optional<double> estimated_sum() const;

 private:
  double lower(size_t index) const;  // the smallest value; -infinite for the first bucket

  const std::vector<uint64_t>* buckets_ = nullptr;
  const output::HistValue* hist_ = nullptr;
  const output::LhistValue* lhist_ = nullptr;
};

// The buckets, but the last, whose bounds are shown for the histograms of a map, ascending. They depend on the
// arguments of hist() and lhist() alone, so that histograms of several runs can be added, bound by bound: a bound that
// one run lacked would miss its values. The exception is the bound of negative values, which is shown where there are
// any.
std::vector<size_t> shown_bounds(const std::vector<const output::Value*>& histograms);

}  // namespace espy::serve
