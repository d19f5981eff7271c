// MapMetrics: a map as a family of metrics.
//
//   count(), sum()                     a counter
//   min(), max(), avg(), tseries()     a gauge (of a tseries, its last value)
//   stats()                            a summary without quantiles: `_count` and `_sum`
//   hist(), lhist()                    a histogram: `_bucket`, `_sum` (estimated, by the middle of each bucket),
//   `_count` integers                           a gauge
//
// Maps of other values, and maps with stacks in their keys, are no metrics. The number of samples is limited; keys that
// were shown before keep their place, so that counters do not come and go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "output/format.h"
#include "output/sink.h"
#include "serve/described_map.h"
#include "serve/exposition.h"

namespace espy::serve {

std::optional<MetricKind> metric_kind(types::Kind value);

class MapMetrics {
 public:
  // `family`: its name without suffix.
  MapMetrics(const DescribedMap& map, std::string family) : map_(map), family_(std::move(family)) {}

  // Adds the family. Returns how many keys were left out: beyond `max_samples`, without a number, or with the same
  // labels as others. Requires a `metric_kind` of the map's value.
  uint64_t write(const output::MapView& view, size_t max_samples, const output::TextStyle& style, Exposition& out);

  const std::string& family() const { return family_; }
  const DescribedMap& map() const { return map_; }

 private:
  struct Row {
    std::string labels;
    const output::Value* value = nullptr;
  };
  std::vector<Row> rows_of(const output::MapView& view, const output::TextStyle& style) const;
  void keep_most(std::vector<Row>& rows, size_t most);

  const DescribedMap& map_;
  std::string family_;
  std::unordered_set<std::string> shown_;  // the labels of the last time, if not all had room
};

}  // namespace espy::serve
