// Maps as metrics of OpenTelemetry: count() and sum() as sums since the map was last cleared, histograms with the
// bounds of their buckets, avg() and stats() as histograms of one bucket, other numbers as gauges.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <unordered_map>
#include <utility>

#include "base/printable.h"
#include "output/collapse_stacks.h"
#include "output/divide.h"
#include "output/histogram.h"
#include "output/json.h"
#include "output/otlp_json.h"
#include "program/layout.h"
#include "types/units.h"

namespace espy::output {

namespace {

using types::Kind;

// UCUM
std::string_view unit_name(types::Unit unit) {
  switch (unit) {
    case types::Unit::kNone: return "";
    case types::Unit::kBytes: return "By";
    case types::Unit::kNanoseconds: return "ns";
    case types::Unit::kMicroseconds: return "us";
    case types::Unit::kMilliseconds: return "ms";
    case types::Unit::kSeconds: return "s";
  }
  return "";
}

// Counts by bucket. A bound is the greatest value of the bucket before it.
struct Buckets {
  OtlpList counts, bounds;
  uint64_t total = 0;

  void add(uint64_t count) {
    counts.add(fmt::format("\"{}\"", count));
    total += count;
  }
};

// `last_of`: the greatest value of a bucket; nullopt if it has none. Buckets at the ends that are empty are left out.
template <class LastOf>
std::string buckets(const std::vector<uint64_t>& all, const LastOf& last_of) {
  const BucketRange range = used_buckets(all);
  Buckets out;
  if (range.first <= range.last) {
    if (range.first > 0) {
      out.add(0);
      out.bounds.add(fmt::format("{}", *last_of(range.first - 1)));
    }
    for (size_t i = range.first; i <= range.last; ++i) {
      out.add(all[i]);
      if (const auto last = last_of(i)) out.bounds.add(fmt::format("{}", *last));
    }
    if (last_of(range.last)) out.add(0);
  }
  return fmt::format("\"count\":\"{}\",\"bucketCounts\":[{}],\"explicitBounds\":[{}]", out.total, out.counts.text(),
                     out.bounds.text());
}

std::string number_text(const StatsValue& stats) {
  return stats.is_signed ? std::to_string(stats.total) : std::to_string(static_cast<uint64_t>(stats.total));
}

// What a data point has apart from its times and attributes; "" for values that are no numbers.
struct ToPoint {
  std::string operator()(bool v) const { return fmt::format("\"asInt\":\"{}\"", v ? 1 : 0); }
  std::string operator()(int64_t v) const { return fmt::format("\"asInt\":\"{}\"", v); }
  std::string operator()(uint64_t v) const {
    return v <= INT64_MAX ? (*this)(static_cast<int64_t>(v)) : fmt::format("\"asDouble\":{}", v);
  }
  std::string operator()(const EnumValue& v) const { return (*this)(v.number); }
  std::string operator()(const StatsValue& v) const {
    return fmt::format("\"count\":\"{}\",\"sum\":{}", v.count, number_text(v));
  }
  std::string operator()(const HistValue& v) const {
    return buckets(v.buckets, [&](size_t i) -> std::optional<int64_t> {
      if (i + 1 == v.buckets.size()) return std::nullopt;
      return static_cast<int64_t>(program::hist_bucket_start(static_cast<uint32_t>(i + 1), v.bits) - 1);
    });
  }
  std::string operator()(const LhistValue& v) const {
    return buckets(v.buckets, [&](size_t i) -> std::optional<int64_t> {
      if (i + 1 == v.buckets.size()) return std::nullopt;
      return v.end_of(i) - 1;
    });
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

std::string data_point(const OtlpList& attributes, uint64_t start_ns, uint64_t time_ns, std::string_view value) {
  return fmt::format("{{\"attributes\":[{}],\"startTimeUnixNano\":\"{}\",\"timeUnixNano\":\"{}\",{}}}",
                     attributes.text(), start_ns, time_ns, value);
}

OtlpList attributes_of(const MapView& map, const Value& key, const TextStyle& style) {
  OtlpList out;
  if (map.is_scalar) return out;
  const KeyStack parts = split_key(key, map.key_names);
  TextStyle of_stacks = style;
  of_stacks.is_for_terminal = true;
  for (const auto& [name, value] : parts.labels) out.add(name, otlp_value(*value, style));
  for (const StackValue* stack : parts.stacks)
    out.add_text(stack->is_user ? "ustack" : "kstack", to_text({*stack}, of_stacks));
  return out;
}

// The kind of metric, and what it has before its data points.
std::string head_of(const MapView& map) {
  constexpr std::string_view kCumulative = "\"aggregationTemporality\":2,";
  switch (map.kind) {
    case Kind::kCount: return fmt::format("\"sum\":{{{}\"isMonotonic\":true,", kCumulative);
    case Kind::kSum: return fmt::format("\"sum\":{{{}\"isMonotonic\":{},", kCumulative, !map.is_signed);
    case Kind::kHist:
    case Kind::kLhist:
    case Kind::kAvg:
    case Kind::kStats: return fmt::format("\"histogram\":{{{}", kCumulative);
    default: return "\"gauge\":{";
  }
}

}  // namespace

std::string otlp_metric(const MapView& map, uint64_t start_ns, uint64_t now_ns, const TextStyle& style) {
  OtlpList points;
  std::unordered_map<std::string, int64_t> used;
  for (const MapEntry& entry : shown_entries(map)) {
    OtlpList attributes = attributes_of(map, entry.key, style);
    // Several keys can have the same texts, as addresses of one function. Points of the same attributes would be one.
    if (const int64_t number = ++used[attributes.text()]; number > 1) attributes.add_number("espy.number", number);
    if (const auto* series = std::get_if<TseriesValue>(&entry.value.node)) {
      for (const TseriesPoint& point : series->points)
        if (point.value)
          points.add(
              data_point(attributes, point.start_ns, point.start_ns + series->interval_ns,
                         series->is_signed ? ToPoint()(*point.value) : ToPoint()(static_cast<uint64_t>(*point.value))));
      continue;
    }
    const std::string point = std::visit(ToPoint(), divided(entry.value, map.divisor).node);
    if (!point.empty()) points.add(data_point(attributes, start_ns, now_ns, point));
  }
  if (points.empty()) return "";
  const std::string_view unit = map.kind == Kind::kCount ? "1" : unit_name(types::unit_of(map.name));
  return fmt::format("{{\"name\":{},\"unit\":\"{}\",{}\"dataPoints\":[{}]}}}}",
                     quoted(types::plain_name(map.name, "value")), unit, head_of(map), points.text());
}

}  // namespace espy::output
