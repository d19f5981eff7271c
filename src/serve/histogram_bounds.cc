#include "serve/histogram_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/layout.h"

namespace espy::serve {

namespace {

constexpr size_t kMostBounds = 128;  // of a map; a hist() of one bit has 127, that of negative values among them
constexpr uint8_t kMostBits = 1;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

Histogram::Histogram(const output::Value& value)
    : hist_(std::get_if<output::HistValue>(&value.node)), lhist_(std::get_if<output::LhistValue>(&value.node)) {
  if (hist_ != nullptr) buckets_ = &hist_->buckets;
  if (lhist_ != nullptr) buckets_ = &lhist_->buckets;
}

double Histogram::lower(size_t index) const {
  if (index == 0) return -kInfinite;
  if (hist_ != nullptr)
    return static_cast<double>(program::hist_bucket_start(static_cast<uint32_t>(index), hist_->bits));
  const double start =
      static_cast<double>(lhist_->min) + static_cast<double>(index - 1) * static_cast<double>(lhist_->step);
  return std::min(start, static_cast<double>(lhist_->max));
}

double Histogram::upper(size_t index) const {
  if (index + 1 >= size()) return kInfinite;
  if (hist_ != nullptr && index > 0)
    return static_cast<double>(program::hist_bucket_start(static_cast<uint32_t>(index) + 1, hist_->bits) - 1);
  return lower(index + 1) - 1;
}

std::optional<double> Histogram::estimated_sum() const {
  double sum = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (count(i) == 0) continue;
    const double low = i == 0 ? upper(i) : lower(i);
    const double high = std::isinf(upper(i)) ? low : upper(i);
    if (low < 0 || (i == 0 && hist_ != nullptr)) return std::nullopt;
    sum += (low + high) / 2 * static_cast<double>(count(i));
  }
  return sum;
}

namespace {

// The buckets with the bounds of a hist() of at most one bit: each bound of fewer bits is one of more. Unsigned values
// from 2^63 on are above all bounds.
std::vector<size_t> hist_bounds(uint8_t bits, bool has_negative) {
  const uint8_t shown_bits = std::min(bits, kMostBits);
  std::vector<size_t> out;
  if (has_negative) out.push_back(0);
  for (uint32_t i = 1; i + 1 < program::hist_bucket_count(shown_bits); ++i) {
    const uint64_t last = program::hist_bucket_start(i + 1, shown_bits) - 1;
    if (last > INT64_MAX) break;
    out.push_back(program::hist_bucket(static_cast<int64_t>(last), bits));
  }
  return out;
}

// Each n-th of `count` buckets but the last, so that they are not too many; the first, which is below the range, and
// the one before the last, where the range ends, among them.
std::vector<size_t> lhist_bounds(size_t count) {
  const size_t steps = count - 2;
  const size_t stride = (steps + kMostBounds - 2) / (kMostBounds - 1);
  std::vector<size_t> out = {0};
  for (size_t i = steps % stride == 0 ? stride : steps % stride; i <= steps; i += stride) out.push_back(i);
  return out;
}

}  // namespace

std::vector<size_t> shown_bounds(const std::vector<const output::Value*>& histograms) {
  if (histograms.empty()) return {};
  const output::Value& first = *histograms.front();
  if (const auto* hist = std::get_if<output::HistValue>(&first.node))
    return hist_bounds(hist->bits, std::ranges::any_of(histograms, [](const output::Value* value) {
                         return Histogram(*value).count(0) > 0;
                       }));
  if (const auto* lhist = std::get_if<output::LhistValue>(&first.node)) return lhist_bounds(lhist->buckets.size());
  return {};
}

}  // namespace espy::serve
