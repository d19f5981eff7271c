// Merges per-CPU values, whose layout is in program/layout.h.
#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"
#include "output/decode.h"
#include "output/divide.h"
#include "program/layout.h"

namespace espy::output {

namespace {

using types::Kind;
using types::Type;

// The 64-bit words of all CPUs' values; missing words are zeros.
class CpuWords {
 public:
  CpuWords(std::span<const std::byte> bytes, uint32_t size_bytes, uint32_t cpu_count, uint32_t stride_bytes)
      : bytes_(bytes), words_per_cpu_((size_bytes + 7) / 8), cpu_count_(cpu_count), stride_bytes_(stride_bytes) {}

  uint32_t cpus() const { return cpu_count_; }
  uint32_t words() const { return words_per_cpu_; }
  // Not inlined, as it is called in many places: 2 KB less code.
  [[gnu::noinline]] uint64_t at(uint32_t cpu, uint32_t word) const {
    return load_le(bytes_, size_t{cpu} * stride_bytes_ + size_t{word} * sizeof(uint64_t));
  }
  uint64_t total(uint32_t word) const {
    uint64_t sum = 0;
    for (uint32_t cpu = 0; cpu < cpu_count_; ++cpu) sum += at(cpu, word);
    return sum;
  }
  std::vector<uint64_t> totals() const;

 private:
  std::span<const std::byte> bytes_;
  uint32_t words_per_cpu_;
  uint32_t cpu_count_;
  uint32_t stride_bytes_;
};

std::vector<uint64_t> CpuWords::totals() const {
  std::vector<uint64_t> out(words_per_cpu_);
  for (uint32_t cpu = 0; cpu < cpu_count_; ++cpu) {
    const std::span<const std::byte> words = bytes_.subspan(std::min(bytes_.size(), size_t{cpu} * stride_bytes_));
    const bool is_whole = words.size() >= out.size() * sizeof(uint64_t);
    for (uint32_t i = 0; i < out.size(); ++i) {
      uint64_t word = 0;
      if (is_whole)
        std::memcpy(&word, words.data() + size_t{i} * sizeof(word), sizeof(word));
      else
        word = at(cpu, i);
      out[i] += word;
    }
  }
  return out;
}

Value number(const Type& type, uint64_t bits) {
  if (type.is_signed) return {static_cast<int64_t>(bits)};
  return {bits};
}

bool is_less(int64_t a, int64_t b, bool is_signed) {
  return is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
}

// min() and max(). Word 0 is the value, word 1 is 1 if the CPU has one.
Value extreme(const Type& type, const CpuWords& words) {
  const bool wants_max = type.kind == Kind::kMax;
  bool is_set = false;
  int64_t best = 0;
  for (uint32_t cpu = 0; cpu < words.cpus(); ++cpu) {
    if (words.at(cpu, 1) != 1) continue;
    const auto value = static_cast<int64_t>(words.at(cpu, 0));
    if (!is_set || (wants_max ? is_less(best, value, type.is_signed) : is_less(value, best, type.is_signed)))
      best = value;
    is_set = true;
  }
  return number(type, static_cast<uint64_t>(best));
}

void merge_slot(program::TseriesSlot& into, const program::TseriesSlot& slot, Kind aggregation, bool is_signed) {
  const bool is_first = into.epoch == 0;
  into.epoch = slot.epoch;
  switch (aggregation) {
    case Kind::kSum:
    case Kind::kAvg:  // wraps around, as in the BPF program
      into.value = static_cast<int64_t>(static_cast<uint64_t>(into.value) + static_cast<uint64_t>(slot.value));
      into.count += slot.count;
      break;
    case Kind::kMin:
      if (is_first || is_less(slot.value, into.value, is_signed)) into.value = slot.value;
      break;
    case Kind::kMax:
      if (is_first || is_less(into.value, slot.value, is_signed)) into.value = slot.value;
      break;
    default:
      if (is_first || slot.count >= into.count) into = slot;
      break;
  }
}

// The newest `intervals` epochs of all CPUs; epochs without a value are nullopt. An epoch has one slot, the same on
// each CPU.
Value tseries(const DecodeContext& context, types::TypeId id, const CpuWords& words) {
  const types::TseriesParams& params = context.types.tseries_params(id);
  constexpr uint32_t kWords = sizeof(program::TseriesSlot) / sizeof(uint64_t);
  uint64_t first = UINT64_MAX, last = 0;
  for (uint32_t cpu = 0; cpu < words.cpus(); ++cpu) {
    for (uint32_t i = 0; i + kWords <= words.words(); i += kWords) {
      const uint64_t epoch = words.at(cpu, i);
      if (epoch == 0 || epoch == program::kTseriesBusy) continue;
      first = std::min(first, epoch);
      last = std::max(last, epoch);
    }
  }
  TseriesValue out;
  out.interval_ns = params.interval_ns;
  out.is_signed = context.types[id].is_signed;
  if (last == 0) return {std::move(out)};
  if (last >= params.intervals) first = std::max(first, last - params.intervals + 1);
  out.points.reserve(last - first + 1);
  for (uint64_t epoch = first; epoch - first <= last - first; ++epoch) {
    const auto word = static_cast<uint32_t>(epoch % params.intervals * kWords);
    program::TseriesSlot merged = {};
    for (uint32_t cpu = 0; cpu < words.cpus(); ++cpu) {
      if (words.at(cpu, word) != epoch) continue;
      merge_slot(merged, {epoch, static_cast<int64_t>(words.at(cpu, word + 1)), words.at(cpu, word + 2)},
                 params.aggregation, out.is_signed);
    }
    TseriesPoint point{epoch * params.interval_ns, std::nullopt};
    if (merged.epoch != 0) {
      const bool is_average = params.aggregation == Kind::kAvg && merged.count > 0;
      const StatsValue all{.count = merged.count, .is_signed = out.is_signed, .total = merged.value};
      point.value = is_average ? average(all) : merged.value;
    }
    out.points.push_back(point);
  }
  return {std::move(out)};
}

// A value that a recent() keeps.
struct Kept {
  uint64_t stamp = 0;
  uint64_t number = 0;  // on its CPU
  std::span<const std::byte> bytes;
};

// Appends those of one CPU, or of all that share the ring. Stamps that are numbers tell which of them are the last;
// those that are times are larger than any number.
void append_kept(std::vector<Kept>& out, std::span<const std::byte> ring, const types::RecentLayout& layout,
                 uint32_t count, uint32_t value_bytes) {
  const uint64_t taken = load_le(ring, 0);
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    const uint64_t stamp = load_le(ring, types::RecentLayout::kStampsOffset + uint64_t{slot} * 8);
    if (stamp == 0 || stamp == program::kRecentBusy || stamp + count <= taken) continue;
    const uint64_t number = taken - 1 - ((taken - 1 - slot) & (layout.slots - 1));
    const size_t at = layout.values_offset + size_t{slot} * layout.stride_bytes;
    if (at + value_bytes <= ring.size()) out.push_back({stamp, number, ring.subspan(at, value_bytes)});
  }
}

Value recent(const DecodeContext& context, const Type& type, std::span<const std::byte> bytes, uint32_t cpu_count) {
  const uint32_t value_bytes = context.types[type.element].size_bytes;
  const types::RecentLayout layout(type.count, value_bytes);
  std::vector<Kept> kept;
  for (uint32_t cpu = 0; cpu < cpu_count && (cpu + 1) * layout.size_bytes <= bytes.size(); ++cpu)
    append_kept(kept, bytes.subspan(cpu * layout.size_bytes, layout.size_bytes), layout, type.count, value_bytes);
  std::ranges::sort(
      kept, [](const Kept& a, const Kept& b) { return std::pair(a.stamp, a.number) < std::pair(b.stamp, b.number); });
  if (kept.size() > type.count) kept.erase(kept.begin(), kept.end() - type.count);
  RecentValue out;
  for (const Kept& each : kept) out.items.push_back(decode(context, type.element, each.bytes));
  return {std::move(out)};
}

}  // namespace

Value decode_per_cpu(const DecodeContext& context, types::TypeId id, std::span<const std::byte> bytes,
                     uint32_t cpu_count, uint32_t stride_bytes) {
  const Type& type = context.types[id];
  if (type.kind == Kind::kRecent) return recent(context, type, bytes, cpu_count);
  const CpuWords words(bytes, type.size_bytes, cpu_count,
                       stride_bytes != 0 ? stride_bytes : (type.size_bytes + 7) & ~7U);
  switch (type.kind) {
    case Kind::kCount: return {words.total(0)};
    case Kind::kSum: return number(type, words.total(0));
    case Kind::kMin:
    case Kind::kMax: return extreme(type, words);
    case Kind::kAvg:
    case Kind::kStats:
      return {StatsValue{.count = words.total(1),
                         .is_signed = type.is_signed,
                         .total = static_cast<int64_t>(words.total(0)),
                         .only_average = type.kind == Kind::kAvg}};
    case Kind::kHist: return {HistValue{type.hist_bits, words.totals()}};
    case Kind::kLhist: return {LhistValue{type.lhist_min, type.lhist_max, type.lhist_step, words.totals()}};
    case Kind::kTseries: return tseries(context, id, words);
    default: return decode(context, id, bytes);
  }
}

}  // namespace espy::output
