#include "output/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/strings.h"
#include "output/quantity.h"
#include "program/layout.h"

namespace espy::output {

namespace {

constexpr size_t kBarWidth = 52;

// "1K", "2M": the largest power of 1024 that divides the number, else the number.
void append_short(std::string& out, uint64_t number) {
  constexpr std::string_view kSuffixes = "KMGTPE";
  size_t steps = 0;
  for (; steps < kSuffixes.size() && number != 0 && number % 1024 == 0; ++steps) number /= 1024;
  append_decimal(out, number);
  if (steps > 0) out += kSuffixes[steps - 1];
}

// The same with a unit.
void append_bound(std::string& out, uint64_t number, types::Unit unit) {
  if (unit == types::Unit::kNone)
    append_short(out, number);
  else
    out += quantity_text(number, unit);
}

void append_label(std::string& out, const HistValue& hist, size_t bucket, types::Unit unit) {
  if (bucket == 0) return void(out += "(..., 0)");
  const auto index = static_cast<uint32_t>(bucket);
  const uint64_t start = program::hist_bucket_start(index, hist.bits);
  const bool is_last = index + 1 == program::hist_bucket_count(hist.bits);
  const uint64_t end = is_last ? 0 : program::hist_bucket_start(index + 1, hist.bits);
  out += '[';
  if (!is_last && end - start == 1) {
    out.append(quantity_text(start, unit)) += ']';
    return;
  }
  append_bound(out, start, unit);
  out += ", ";
  if (!is_last)
    append_bound(out, end, unit);
  else
    out += unit == types::Unit::kNone ? "16E" : "...";  // 2^64
  out += ')';
}

// Shortened only if the step is a multiple of 1024.
void append_linear(std::string& out, int64_t number, int64_t step, types::Unit unit) {
  constexpr int64_t kKibi = 1024, kMebi = kKibi * kKibi;
  if (unit != types::Unit::kNone) return void(out += quantity_text(number, unit));
  const bool is_short = step % kKibi == 0 && number != 0 && number % kKibi == 0;
  const bool is_mebi = is_short && number % kMebi == 0;
  append_decimal(out, is_mebi ? number / kMebi : is_short ? number / kKibi : number);
  if (is_short) out += is_mebi ? 'M' : 'K';
}

void append_label(std::string& out, const LhistValue& hist, size_t bucket, types::Unit unit) {
  const auto append = [&](int64_t bound) { append_linear(out, bound, hist.step, unit); };
  if (bucket == 0) {
    out += "(..., ";
    append(hist.min);
  } else if (bucket + 1 == hist.buckets.size()) {
    out += '[';
    append(hist.max);
    out += ", ...";
  } else {
    out += '[';
    append(hist.end_of(bucket - 1));
    out += ", ";
    append(hist.end_of(bucket));
  }
  out += ')';
}

template <class Hist>
std::string label_of(const Hist& hist, size_t bucket, types::Unit unit) {
  std::string out;
  append_label(out, hist, bucket, unit);
  return out;
}

// The bar's width is the bucket's share of the fullest bucket, before the division. Single precision, as bpftrace has
// it: 15 of 26 is 30 wide, not 29.
void append_bar(std::string& out, uint64_t count, uint64_t most) {
  const auto width = static_cast<size_t>(static_cast<float>(count) / static_cast<float>(most) * kBarWidth);
  out.append(" |").append(width, '@').append(kBarWidth - width, ' ').append("|\n");
}

template <class Hist>
void append_rows(std::string& out, const Hist& hist, uint64_t divisor, types::Unit unit) {
  constexpr size_t kCountWidth = 8;
  const BucketRange range = used_buckets(hist.buckets);
  size_t label_width = 16;
  uint64_t most = 0;
  for (size_t i = range.first; i <= range.last; ++i) {
    most = std::max(most, hist.buckets[i]);
    if (unit != types::Unit::kNone) label_width = std::max(label_width, label_of(hist, i, unit).size() + 1);
  }
  for (size_t i = range.first; i <= range.last; ++i) {
    const size_t start = out.size();
    append_label(out, hist, i, unit);
    fill_up(out, start, label_width);
    const fmt::format_int count(hist.buckets[i] / divisor);
    if (count.size() < kCountWidth) out.append(kCountWidth - count.size(), ' ');
    out.append(count.data(), count.size());
    append_bar(out, hist.buckets[i], most);
  }
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

template <class Hist>
void append_all(std::string& out, const Hist& hist, uint64_t divisor, const HistogramStyle& style) {
  append_rows(out, hist, divisor, style.unit);
  if (!style.has_percentiles) return;
  const std::string percentiles = percentiles_text(hist, style.unit);
  if (!percentiles.empty()) out.append(percentiles) += '\n';
}

template <class Hist>
std::vector<HistogramRow> rows_of(const Hist& hist, types::Unit unit) {
  const BucketRange range = used_buckets(hist.buckets);
  std::vector<HistogramRow> out;
  for (size_t i = range.first; i <= range.last; ++i) out.push_back({label_of(hist, i, unit), hist.buckets[i]});
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

std::vector<HistogramRow> labelled_rows(const HistValue& hist, types::Unit unit) { return rows_of(hist, unit); }
std::vector<HistogramRow> labelled_rows(const LhistValue& hist, types::Unit unit) { return rows_of(hist, unit); }

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
    return "<= " + quantity_text(hist.end_of(bucket) - 1, unit);
  });
}

void append_histogram(std::string& out, const HistValue& hist, uint64_t divisor, const HistogramStyle& style) {
  append_all(out, hist, divisor == 0 ? 1 : divisor, style);
}

void append_histogram(std::string& out, const LhistValue& hist, const HistogramStyle& style) {
  append_all(out, hist, 1, style);
}

}  // namespace espy::output
