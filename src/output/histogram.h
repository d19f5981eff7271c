// Histograms as rows of text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output/value.h"
#include "types/type.h"

namespace espy::output {

struct HistogramStyle {
  types::Unit unit = types::Unit::kNone;  // of the values
  bool has_percentiles = false;           // a line with them follows the rows
};

// Appends the rows from the first to the last non-empty bucket. `divisor`: of the counts shown; 0: none.
void append_histogram(std::string& out, const HistValue& hist, uint64_t divisor, const HistogramStyle& style = {});
void append_histogram(std::string& out, const LhistValue& hist, const HistogramStyle& style = {});

// One row of a histogram.
struct HistogramRow {
  std::string label;  // "[4, 8)"
  uint64_t count = 0;
};
// The same rows, as labels and counts.
std::vector<HistogramRow> labelled_rows(const HistValue& hist, types::Unit unit);
std::vector<HistogramRow> labelled_rows(const LhistValue& hist, types::Unit unit);

// "p50 <= 1023, p90 <= 2047, p99 <= 8191": the largest values of the buckets that the percentiles are in, as
// percentile() of the language gives them; "" if nothing was counted.
std::string percentiles_text(const HistValue& hist, types::Unit unit);
std::string percentiles_text(const LhistValue& hist, types::Unit unit);

// The first and last non-empty bucket; first > last if all are empty.
struct BucketRange {
  size_t first = 1;
  size_t last = 0;
};
BucketRange used_buckets(const std::vector<uint64_t>& buckets);

}  // namespace espy::output
