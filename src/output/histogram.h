// Histograms as rows of text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output/value.h"

namespace espy::output {

// The rows from the first to the last non-empty bucket. `divisor`: of the counts shown; 0: none.
std::string histogram_rows(const HistValue& hist, uint64_t divisor);
std::string histogram_rows(const LhistValue& hist);

// One row of a histogram.
struct HistogramRow {
  std::string label;  // "[4, 8)"
  uint64_t count = 0;
};
// The same rows, as labels and counts.
std::vector<HistogramRow> labelled_rows(const HistValue& hist);
std::vector<HistogramRow> labelled_rows(const LhistValue& hist);

// The first and last non-empty bucket; first > last if all are empty.
struct BucketRange {
  size_t first = 1;
  size_t last = 0;
};
BucketRange used_buckets(const std::vector<uint64_t>& buckets);

}  // namespace espy::output
