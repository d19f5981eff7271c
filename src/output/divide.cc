#include "output/divide.h"

#include <algorithm>

namespace espy::output {

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
