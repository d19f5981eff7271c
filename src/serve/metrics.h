// Metrics: the whole text of /metrics: the maps of the script, and what espy says of its own run.
//
// The format is OpenMetrics 1.0 or Prometheus' text format 0.0.4. They differ in the names of counters' families, and
// in the last line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "output/format.h"
#include "output/sink.h"
#include "output/value.h"
#include "program/program.h"
#include "runtime/live_run.h"
#include "serve/described_map.h"

namespace espy::serve {

// ---- The text

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram, kSummary };
enum class ExpositionFormat : uint8_t { kOpenMetrics, kText };

// `text` as the value of a label or a line of help: control characters, and bytes that are not UTF-8, as `\xNN`, then
// escaped.
std::string escaped_label(std::string_view text);

// A label as it stands between the braces: NAME="VALUE".
std::string label(std::string_view name, std::string_view value);

// A number that is the bound of a bucket: "7.0", "1.8446744073709552e+19".
std::string bound_text(double value);

// Writes the text.
class Exposition {
 public:
  explicit Exposition(ExpositionFormat format) : format_(format) {}

  // Begins a family. `name` is without the suffix `_total`.
  void family(std::string_view name, MetricKind kind, std::string_view help);
  // Adds a sample of the family: `suffix` is "" for a gauge, "_total" for a counter, "_bucket", "_sum" or "_count".
  // `labels`: joined by commas, may be empty.
  void sample(std::string_view suffix, std::string_view labels, std::string_view value);
  void sample(std::string_view suffix, std::string_view labels, uint64_t value) {
    sample(suffix, labels, std::to_string(value));
  }
  // Returns the whole text. Ends the exposition.
  std::string finish();

 private:
  ExpositionFormat format_;
  std::string name_;
  std::string text_;
};

// Whether a scraper that sends this header Accept reads OpenMetrics.
ExpositionFormat format_for(std::string_view accept);
std::string_view content_type_of(ExpositionFormat format);

// ---- Maps

// hist() and lhist() with the bounds that a scraper of metrics reads: the largest value of each bucket.
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

// The buckets, but the last, whose bounds are shown for the histograms of a map, ascending. They depend only on the
// arguments of hist() and lhist(), so histograms of several runs can be added, bound by bound. A bound that one run
// lacked would miss its values. The exception is the bound of negative values, which is shown where there are any.
std::vector<size_t> shown_bounds(const std::vector<const output::Value*>& histograms);

// nullopt: a map of such values is not a metric.
std::optional<MetricKind> metric_kind(types::Kind value);

// A map as a family of metrics.
//
//   count(), sum()                  a counter
//   min(), max(), avg(), tseries()  a gauge (of a tseries, its last value)
//   stats()                         a summary without quantiles: `_count` and `_sum`
//   hist(), lhist()                 a histogram: `_bucket`, `_sum` (estimated, by the middle of buckets), `_count`
//   integers                        a gauge
//
// Maps of other values, and maps with stacks in their keys, are not metrics. The number of samples is limited; keys
// that were shown before keep their place, so that counters do not come and go.
class MapMetrics {
 public:
  // `family`: its name without suffix.
  MapMetrics(const DescribedMap& map, std::string family) : map_(map), family_(std::move(family)) {}

  // Adds the family. Returns how many keys were skipped: beyond `max_samples`, without a number, or with the same
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

// ---- What the probes of a run cost

// Adds the families of programs, of their timing and of memory. Returns how many programs were skipped.
size_t write_cost(const program::Program& program, const runtime::RunCost& cost, Exposition& out);

// For the page: the recent cost as a JSON object, with the most expensive programs.
std::string cost_json(const runtime::RunCost& cost);

// ---- The run

// Counts of the server, for its own metrics.
struct ServerCounts {
  size_t viewers = 0;
  uint64_t dropped_viewers = 0;
};

class Metrics {
 public:
  // The arguments must outlive the object. `script`: its name. `max_samples`: of a map.
  Metrics(const std::vector<DescribedMap>& maps, const program::Program& program, std::string script,
          output::TextStyle style, size_t max_samples);

  std::string text(runtime::LiveRun& run, const ServerCounts& counts, ExpositionFormat format);

 private:
  void write_maps(runtime::LiveRun& run, Exposition& out);
  void write_run(const output::LossReport& losses, const runtime::RunCost& cost, Exposition& out) const;

  const program::Program& program_;
  std::string script_;
  output::TextStyle style_;
  size_t max_samples_;
  double started_at_;  // seconds since the epoch
  std::vector<MapMetrics> maps_;
};

// The user and system time of this process so far, in seconds.
double cpu_seconds();

}  // namespace espy::serve
