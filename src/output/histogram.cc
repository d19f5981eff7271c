#include "output/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "output/quantity.h"
#include "program/layout.h"

namespace espy::output {

namespace {

constexpr int kBarWidth = 52;

// "1K", "2M": the largest power of 1024 that divides the number, else the number.
std::string short_number(uint64_t number) {
  constexpr std::string_view kSuffixes = "KMGTPE";
  std::string suffix;
  for (size_t i = 0; i < kSuffixes.size() && number != 0 && number % 1024 == 0; ++i) {
    number /= 1024;
    suffix = kSuffixes[i];
  }
  return fmt::format("{}{}", number, suffix);
}

// The same with a unit.
std::string bound_text(uint64_t number, types::Unit unit) {
  return unit == types::Unit::kNone ? short_number(number) : quantity_text(number, unit);
}

std::string hist_label(uint32_t index, uint8_t bits, types::Unit unit) {
  if (index == 0) return "(..., 0)";
  const uint64_t start = program::hist_bucket_start(index, bits);
  if (index + 1 == program::hist_bucket_count(bits)) {
    const bool is_plain = unit == types::Unit::kNone;
    return fmt::format("[{}, {})", bound_text(start, unit), is_plain ? "16E" : "...");  // 2^64
  }
  const uint64_t end = program::hist_bucket_start(index + 1, bits);
  if (end - start == 1) return fmt::format("[{}]", quantity_text(start, unit));
  return fmt::format("[{}, {})", bound_text(start, unit), bound_text(end, unit));
}

// Shortened only if the step is a multiple of 1024.
std::string linear_number(int64_t number, int64_t step) {
  constexpr int64_t kKibi = 1024, kMebi = kKibi * kKibi;
  if (step % kKibi != 0 || number == 0) return std::to_string(number);
  if (number % kMebi == 0) return fmt::format("{}M", number / kMebi);
  if (number % kKibi == 0) return fmt::format("{}K", number / kKibi);
  return std::to_string(number);
}

std::string linear_label(size_t index, const LhistValue& hist, types::Unit unit) {
  const auto bound = [&](int64_t number) {
    return unit == types::Unit::kNone ? linear_number(number, hist.step) : quantity_text(number, unit);
  };
  if (index == 0) return fmt::format("(..., {})", bound(hist.min));
  if (index + 1 == hist.buckets.size()) return fmt::format("[{}, ...)", bound(hist.max));
  const int64_t start = hist.min + static_cast<int64_t>(index - 1) * hist.step;
  return fmt::format("[{}, {})", bound(start), bound(start + hist.step));
}

// The bar's width is the bucket's share of the fullest bucket, before the division. Single precision, as bpftrace has
// it: 15 of 26 is 30 wide, not 29.
std::string text_of(const std::vector<HistogramRow>& rows, uint64_t divisor, types::Unit unit) {
  size_t label_width = 16;
  uint64_t most = 0;
  for (const HistogramRow& row : rows) {
    most = std::max(most, row.count);
    if (unit != types::Unit::kNone) label_width = std::max(label_width, row.label.size() + 1);
  }
  std::string out;
  for (const HistogramRow& row : rows) {
    const auto width = static_cast<size_t>(static_cast<float>(row.count) / static_cast<float>(most) * kBarWidth);
    out += fmt::format("{:<{}}{:>8} |{:<52}|\n", row.label, label_width, row.count / divisor, std::string(width, '@'));
  }
  return out;
}

// `end(i)`: the largest value of bucket i, as text.
template <class End>
std::string percentiles_of(const std::vector<uint64_t>& buckets, const End& end) {
  constexpr uint64_t kPercents[] = {50, 90, 99};
  constexpr uint64_t kWhole = 100;
  const uint64_t sum = std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
  std::string out;
  for (const uint64_t percent : kPercents) {
    if (sum == 0) break;
    const uint64_t rank = sum / kWhole * percent + (sum % kWhole * percent + kWhole - 1) / kWhole;
    uint64_t counted = 0;
    size_t bucket = 0;
    while (counted + buckets[bucket] < rank) counted += buckets[bucket++];
    out += fmt::format("{}p{} {}", out.empty() ? "" : ", ", percent, end(bucket));
  }
  return out;
}

std::string with_percentiles(const std::string& rows, const std::string& percentiles) {
  return percentiles.empty() ? rows : rows + percentiles + "\n";
}

template <class Hist, class Label>
std::vector<HistogramRow> rows_of(const Hist& hist, const Label& label) {
  const BucketRange range = used_buckets(hist.buckets);
  std::vector<HistogramRow> out;
  for (size_t i = range.first; i <= range.last; ++i) out.push_back({label(i), hist.buckets[i]});
  return out;
}

}  // namespace

BucketRange used_buckets(const std::vector<uint64_t>& buckets) {
  const auto is_used = [](uint64_t count) { return count != 0; };
  const auto first = std::find_if(buckets.begin(), buckets.end(), is_used);
  if (first == buckets.end()) return {};
  const auto last = std::find_if(buckets.rbegin(), buckets.rend(), is_used);
  return {static_cast<size_t>(first - buckets.begin()), static_cast<size_t>(buckets.rend() - last - 1)};
}

std::vector<HistogramRow> labelled_rows(const HistValue& hist, types::Unit unit) {
  return rows_of(hist, [&](size_t i) { return hist_label(static_cast<uint32_t>(i), hist.bits, unit); });
}

std::vector<HistogramRow> labelled_rows(const LhistValue& hist, types::Unit unit) {
  return rows_of(hist, [&](size_t i) { return linear_label(i, hist, unit); });
}

std::string percentiles_text(const HistValue& hist, types::Unit unit) {
  return percentiles_of(hist.buckets, [&](size_t bucket) {
    const bool is_last = bucket + 1 == hist.buckets.size();
    const auto next = static_cast<uint32_t>(bucket + 1);
    const uint64_t end = is_last ? UINT64_MAX : program::hist_bucket_start(next, hist.bits) - 1;
    return "<= " + quantity_text(end, unit);
  });
}

// Beyond its last bound a linear histogram knows no more.
std::string percentiles_text(const LhistValue& hist, types::Unit unit) {
  return percentiles_of(hist.buckets, [&](size_t bucket) {
    if (bucket + 1 == hist.buckets.size()) return ">= " + quantity_text(hist.max, unit);
    return "<= " + quantity_text(hist.min + static_cast<int64_t>(bucket) * hist.step - 1, unit);
  });
}

std::string histogram_rows(const HistValue& hist, uint64_t divisor, const HistogramStyle& style) {
  const std::string rows = text_of(labelled_rows(hist, style.unit), divisor == 0 ? 1 : divisor, style.unit);
  return style.has_percentiles ? with_percentiles(rows, percentiles_text(hist, style.unit)) : rows;
}

std::string histogram_rows(const LhistValue& hist, const HistogramStyle& style) {
  const std::string rows = text_of(labelled_rows(hist, style.unit), 1, style.unit);
  return style.has_percentiles ? with_percentiles(rows, percentiles_text(hist, style.unit)) : rows;
}

}  // namespace espy::output
