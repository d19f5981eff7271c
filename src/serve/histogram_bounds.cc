#include "serve/histogram_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "program/layout.h"

namespace espy::serve {

namespace {

constexpr size_t kMaxWholeRange = 128;
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

std::vector<size_t> shown_bounds(const std::vector<const output::Value*>& histograms) {
  std::set<size_t> used;
  bool is_hist = false;
  for (const output::Value* value : histograms) {
    const Histogram histogram(*value);
    is_hist |= std::holds_alternative<output::HistValue>(value->node);
    for (size_t i = 0; i + 1 < histogram.size(); ++i)
      if (histogram.count(i) > 0) used.insert(i);
  }
  if (used.empty()) return {};
  // hist() counts negative values, which are rare, in the first bucket.
  const size_t first = is_hist && *used.begin() > 0 ? 1 : 0;
  std::set<size_t> out;
  if (*used.rbegin() - first < kMaxWholeRange) {
    for (size_t i = first; i <= *used.rbegin(); ++i) out.insert(i);
  } else {
    for (const size_t i : used) {
      out.insert(i);
      if (i > first) out.insert(i - 1);
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace espy::serve
