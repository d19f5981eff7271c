#include "serve/map_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "output/divide.h"
#include "serve/histogram_bounds.h"

namespace espy::serve {

namespace {

using output::Value;
using types::Kind;

std::string signed_text(bool is_signed, int64_t number) {
  return is_signed ? std::to_string(number) : std::to_string(static_cast<uint64_t>(number));
}

// A value as one number; "" if it is none.
struct NumberText {
  std::string operator()(bool value) const { return value ? "1" : "0"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(const output::EnumValue& value) const { return std::to_string(value.number); }
  std::string operator()(const output::PointerValue& value) const { return std::to_string(value.address); }
  std::string operator()(const output::StatsValue& value) const {
    return signed_text(value.is_signed, output::average(value));
  }
  std::string operator()(const output::TseriesValue& value) const {
    const auto last = std::find_if(value.points.rbegin(), value.points.rend(),
                                   [](const output::TseriesPoint& point) { return point.value.has_value(); });
    return last == value.points.rend() ? "" : signed_text(value.is_signed, *last->value);
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

bool is_stack(const Value& part) { return std::holds_alternative<output::StackValue>(part.node); }

// The parts of a key; nothing for a scalar.
std::vector<const Value*> parts_of(const output::MapView& view, const Value& key, size_t count) {
  std::vector<const Value*> out;
  if (view.is_scalar) return out;
  const auto* tuple = std::get_if<output::TupleValue>(&key.node);
  if (tuple == nullptr || tuple->items.size() != count) return {&key};
  for (const Value& item : tuple->items) out.push_back(&item);
  return out;
}

std::string with_bound(const std::string& labels, const std::string& bound) {
  return fmt::format("{}{}le=\"{}\"", labels, labels.empty() ? "" : ",", bound);
}

void write_histogram(const std::string& labels, const Histogram& histogram, const std::vector<size_t>& shown,
                     Exposition& out) {
  uint64_t sum = 0;
  size_t next = 0;
  for (const size_t index : shown) {
    for (; next <= index; ++next) sum += histogram.count(next);
    out.sample("_bucket", with_bound(labels, bound_text(histogram.upper(index))), sum);
  }
  for (; next < histogram.size(); ++next) sum += histogram.count(next);
  out.sample("_bucket", with_bound(labels, "+Inf"), sum);
  const auto total = histogram.estimated_sum();
  if (!total) return;  // OpenMetrics has a count only with a sum
  out.sample("_sum", labels, fmt::format("{:.17g}", *total));
  out.sample("_count", labels, sum);
}

void write_summary(const std::string& labels, const output::StatsValue& stats, Exposition& out) {
  out.sample("_count", labels, stats.count);
  // A sum of a summary must not be negative.
  if (!stats.is_signed || stats.total >= 0) out.sample("_sum", labels, signed_text(stats.is_signed, stats.total));
}

}  // namespace

std::optional<MetricKind> metric_kind(Kind value) {
  switch (value) {
    case Kind::kCount:
    case Kind::kSum: return MetricKind::kCounter;
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAvg:
    case Kind::kTseries:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kEnum:
    case Kind::kPointer: return MetricKind::kGauge;
    case Kind::kStats: return MetricKind::kSummary;
    case Kind::kHist:
    case Kind::kLhist: return MetricKind::kHistogram;
    default: return std::nullopt;
  }
}

std::vector<MapMetrics::Row> MapMetrics::rows_of(const output::MapView& view, const output::TextStyle& style) const {
  std::vector<Row> out;
  std::set<std::string, std::less<>> seen;
  output::TextStyle shown = style;
  shown.is_for_terminal = true;  // texts that differ stay different
  for (const output::MapEntry& entry : view.entries) {
    const std::vector<const Value*> parts = parts_of(view, entry.key, map_.labels.size());
    if (std::ranges::any_of(parts, [](const Value* part) { return is_stack(*part); })) continue;
    if (parts.size() != map_.labels.size()) continue;
    Row row{"", &entry.value};
    for (size_t i = 0; i < parts.size(); ++i)
      row.labels += (i > 0 ? "," : "") + label(map_.labels[i], output::to_text(*parts[i], shown));
    if (seen.insert(row.labels).second) out.push_back(std::move(row));
  }
  return out;
}

// Those that were shown the last time, then the largest.
void MapMetrics::keep_most(std::vector<Row>& rows, size_t most) {
  if (rows.size() <= most) {
    shown_.clear();
    return;
  }
  std::ranges::reverse(rows);  // display order is ascending
  std::stable_partition(rows.begin(), rows.end(), [&](const Row& row) { return shown_.contains(row.labels); });
  rows.resize(most);
  std::ranges::reverse(rows);
  shown_.clear();
  for (const Row& row : rows) shown_.insert(row.labels);
}

uint64_t MapMetrics::write(const output::MapView& view, size_t max_samples, const output::TextStyle& style,
                           Exposition& out) {
  const MetricKind kind = *metric_kind(map_.value);
  const std::string help =
      kind == MetricKind::kHistogram ? map_.help + " (_sum is estimated from the buckets)" : map_.help;
  out.family(family_, kind, help);
  std::vector<Row> rows = rows_of(view, style);
  std::vector<size_t> bounds;
  if (kind == MetricKind::kHistogram) {
    std::vector<const Value*> values;
    for (const Row& row : rows) values.push_back(row.value);
    bounds = shown_bounds(values);
  }
  const size_t samples_of_key = kind == MetricKind::kHistogram ? bounds.size() + 3
                                : kind == MetricKind::kSummary ? 2
                                                               : 1;
  keep_most(rows, std::max<size_t>(max_samples / samples_of_key, 1));
  uint64_t written = 0;
  for (const Row& row : rows) {
    ++written;
    const auto* stats = std::get_if<output::StatsValue>(&row.value->node);
    const std::string number = std::visit(NumberText(), row.value->node);
    if (kind == MetricKind::kHistogram)
      write_histogram(row.labels, Histogram(*row.value), bounds, out);
    else if (kind == MetricKind::kSummary && stats != nullptr)
      write_summary(row.labels, *stats, out);
    else if (number.empty() || (kind == MetricKind::kCounter && number.starts_with('-')))
      --written;  // a counter must not be negative
    else
      out.sample(kind == MetricKind::kCounter ? "_total" : "", row.labels, number);
  }
  return view.entries.size() - written;
}

}  // namespace espy::serve
