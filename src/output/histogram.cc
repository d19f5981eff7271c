#include "output/histogram.h"

#include <fmt/format.h>

#include <algorithm>

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

std::string hist_label(uint32_t index, uint8_t bits) {
  if (index == 0) return "(..., 0)";
  const uint64_t start = program::hist_bucket_start(index, bits);
  if (index + 1 == program::hist_bucket_count(bits)) return fmt::format("[{}, 16E)", short_number(start));  // 2^64
  const uint64_t end = program::hist_bucket_start(index + 1, bits);
  if (end - start == 1) return fmt::format("[{}]", start);
  return fmt::format("[{}, {})", short_number(start), short_number(end));
}

// Shortened only if the step is a multiple of 1024.
std::string linear_number(int64_t number, int64_t step) {
  constexpr int64_t kKibi = 1024, kMebi = kKibi * kKibi;
  if (step % kKibi != 0 || number == 0) return std::to_string(number);
  if (number % kMebi == 0) return fmt::format("{}M", number / kMebi);
  if (number % kKibi == 0) return fmt::format("{}K", number / kKibi);
  return std::to_string(number);
}

std::string linear_label(size_t index, const LhistValue& hist) {
  const auto bound = [&](int64_t number) { return linear_number(number, hist.step); };
  if (index == 0) return fmt::format("(..., {})", bound(hist.min));
  if (index + 1 == hist.buckets.size()) return fmt::format("[{}, ...)", bound(hist.max));
  const int64_t start = hist.min + static_cast<int64_t>(index - 1) * hist.step;
  return fmt::format("[{}, {})", bound(start), bound(start + hist.step));
}

// The bar's width is the bucket's share of the fullest bucket, before the division. Single precision, as bpftrace has
// it: 15 of 26 is 30 wide, not 29.
std::string text_of(const std::vector<HistogramRow>& rows, uint64_t divisor) {
  uint64_t most = 0;
  for (const HistogramRow& row : rows) most = std::max(most, row.count);
  std::string out;
  for (const HistogramRow& row : rows) {
    const auto width = static_cast<size_t>(static_cast<float>(row.count) / static_cast<float>(most) * kBarWidth);
    out += fmt::format("{:<16}{:>8} |{:<52}|\n", row.label, row.count / divisor, std::string(width, '@'));
  }
  return out;
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

std::vector<HistogramRow> labelled_rows(const HistValue& hist) {
  return rows_of(hist, [&](size_t i) { return hist_label(static_cast<uint32_t>(i), hist.bits); });
}

std::vector<HistogramRow> labelled_rows(const LhistValue& hist) {
  return rows_of(hist, [&](size_t i) { return linear_label(i, hist); });
}

std::string histogram_rows(const HistValue& hist, uint64_t divisor) {
  return text_of(labelled_rows(hist), divisor == 0 ? 1 : divisor);
}

std::string histogram_rows(const LhistValue& hist) { return text_of(labelled_rows(hist), 1); }

}  // namespace espy::output
