// Histograms as rows of text, and the bounds of their buckets.
#pragma once

#include <string>

#include "output/value.h"

namespace espy::output {

// Rows from the first to the last bucket that is not empty; counts divided by `divisor` unless that is 0.
std::string histogram_rows(const HistValue& hist, uint64_t divisor);
std::string histogram_rows(const LhistValue& hist);

// The first and last bucket that is not empty; first > last if all are.
struct BucketRange {
  size_t first = 1;
  size_t last = 0;
};
BucketRange used_buckets(const std::vector<uint64_t>& buckets);

}  // namespace espy::output
