#include "output/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "output/histogram.h"

namespace espy::output {

namespace {

using types::Unit;

// The larger units of a unit, each with what it takes of the one before.
struct Step {
  std::string_view name;
  double factor;
};
constexpr Step kTimes[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000}, {"s", 1000}};
constexpr Step kSizes[] = {{"B", 1},      {"KiB", 1024}, {"MiB", 1024}, {"GiB", 1024},
                           {"TiB", 1024}, {"PiB", 1024}, {"EiB", 1024}};

std::span<const Step> steps_from(Unit unit) {
  switch (unit) {
    case Unit::kNone: return {};
    case Unit::kBytes: return kSizes;
    case Unit::kNanoseconds: return kTimes;
    case Unit::kMicroseconds: return std::span(kTimes).subspan(1);
    case Unit::kMilliseconds: return std::span(kTimes).subspan(2);
    case Unit::kSeconds: return std::span(kTimes).subspan(3);
  }
  return {};
}

std::string scaled_text(double number, std::span<const Step> steps) {
  constexpr double kDecimals = 1000;
  size_t step = 0;
  // By the rounded number: 999.9999 us are 1 ms.
  while (step + 1 < steps.size() && std::round(std::abs(number) * kDecimals) / kDecimals >= steps[step + 1].factor)
    number /= steps[++step].factor;
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return fmt::format("{} {}", text, steps[step].name);
}

template <class Int>
std::string number_text(Int number, Unit unit) {
  const std::span<const Step> steps = steps_from(unit);
  return steps.empty() ? std::to_string(number) : scaled_text(static_cast<double>(number), steps);
}

std::string stats_text(const StatsValue& stats, Unit unit) {
  const auto text = [&](int64_t number) {
    return stats.is_signed ? number_text(number, unit) : number_text(static_cast<uint64_t>(number), unit);
  };
  return stats.only_average ? text(average(stats))
                            : fmt::format("{{ .count = {}, .average = {}, .total = {} }}", stats.count,
                                          text(average(stats)), text(stats.total));
}

}  // namespace

std::string quantity_text(int64_t number, Unit unit) { return number_text(number, unit); }
std::string quantity_text(uint64_t number, Unit unit) { return number_text(number, unit); }

Unit unit_for(const MapView& map, const TextStyle& style) {
  const bool is_histogram = map.kind == types::Kind::kHist || map.kind == types::Kind::kLhist;
  if (!style.has_units || map.kind == types::Kind::kCount || (map.divisor > 1 && !is_histogram)) return Unit::kNone;
  const auto told = style.units.find(std::string(map.name));
  return told != style.units.end() ? told->second : types::unit_of(map.name);
}

void append_text(std::string& out, const Value& value, Unit unit, const TextStyle& style) {
  if (unit == Unit::kNone) return append_text(out, value, style);
  const HistogramStyle histogram{unit, style.has_percentiles};
  if (const auto* number = std::get_if<int64_t>(&value.node))
    out += number_text(*number, unit);
  else if (const auto* count = std::get_if<uint64_t>(&value.node))
    out += number_text(*count, unit);
  else if (const auto* stats = std::get_if<StatsValue>(&value.node))
    out += stats_text(*stats, unit);
  else if (const auto* hist = std::get_if<HistValue>(&value.node))
    append_histogram(out, *hist, 0, histogram);
  else if (const auto* lhist = std::get_if<LhistValue>(&value.node))
    append_histogram(out, *lhist, histogram);
  else
    append_text(out, value, style);
}

std::string to_text(const Value& value, Unit unit, const TextStyle& style) {
  std::string out;
  append_text(out, value, unit, style);
  return out;
}

ShownEntries::ShownEntries(const MapView& map) : map_(map) {
  count_ = map.entries.empty() ? map.compact.size() : map.entries.size();
  first_ = map.top == 0 ? 0 : count_ - std::min<size_t>(count_, map.top);
}

const MapEntry& ShownEntries::Iterator::operator*() {
  if (!map_.entries.empty()) return map_.entries[index_];
  made_ = map_.compact.at(index_);
  return made_;
}

MapEntry ShownEntries::at(size_t index) const {
  return map_.entries.empty() ? map_.compact.at(first_ + index) : map_.entries[first_ + index];
}

namespace {

// Rounds toward zero; 0 if the divisor is above INT64_MAX. Requires that it is not 0.
int64_t quotient(int64_t value, uint64_t divisor) {
  return divisor > INT64_MAX ? 0 : value / static_cast<int64_t>(divisor);
}

}  // namespace

int64_t average(const StatsValue& stats) {
  if (stats.count == 0) return 0;
  if (stats.is_signed) return quotient(stats.total, stats.count);
  return static_cast<int64_t>(static_cast<uint64_t>(stats.total) / stats.count);
}

Value divided(const Value& value, uint64_t divisor) {
  Value out = value;
  if (divisor <= 1) return out;
  if (auto* v = std::get_if<int64_t>(&out.node)) *v = quotient(*v, divisor);
  if (auto* v = std::get_if<uint64_t>(&out.node)) *v /= divisor;
  if (auto* v = std::get_if<HistValue>(&out.node))
    for (uint64_t& count : v->buckets) count /= divisor;
  // The total only: the average is computed from it.
  if (auto* v = std::get_if<StatsValue>(&out.node))
    v->total =
        v->is_signed ? quotient(v->total, divisor) : static_cast<int64_t>(static_cast<uint64_t>(v->total) / divisor);
  return out;
}

}  // namespace espy::output
