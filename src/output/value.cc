#include "output/value.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "base/strings.h"
#include "output/decode.h"
#include "output/format.h"
#include "output/histogram.h"
#include "output/quantity.h"
#include "program/layout.h"

namespace espy::output {

namespace {

// Beyond it, the second array that digits need would be much of the memory that a map takes.
constexpr size_t kMostByDigits = 1 << 16;

// Stable.
void sort_by_digit(std::vector<Order>& items, std::vector<Order>& other, uint64_t Order::*number, unsigned shift) {
  std::array<uint32_t, 256> next = {};
  for (const Order& item : items) ++next[item.*number >> shift & 0xff];
  uint32_t begin = 0;
  for (uint32_t& place : next) begin += std::exchange(place, begin);
  for (const Order& item : items) other[next[item.*number >> shift & 0xff]++] = item;
  items.swap(other);
}

// Byte by byte, the last one first, and only those in which items differ: values are small, and keys alike.
void sort_by_digits(std::vector<Order>& items) {
  std::vector<Order> other(items.size());
  for (uint64_t Order::*number : {&Order::by_key, &Order::by_value}) {
    uint64_t differing = 0;
    for (const Order& item : items) differing |= item.*number ^ items[0].*number;
    for (unsigned shift = 0; shift < 64; shift += 8)
      if ((differing >> shift & 0xff) != 0) sort_by_digit(items, other, number, shift);
  }
}

}  // namespace

void sort_by_numbers(std::vector<Order>& items, const std::function<bool(uint32_t, uint32_t)>& is_before) {
  const auto numbers = [](const Order& item) { return std::tie(item.by_value, item.by_key); };
  if (items.size() <= kMostByDigits)
    sort_by_digits(items);
  else
    std::ranges::sort(items, {}, numbers);
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end =
        std::find_if(begin, items.end(), [&](const Order& item) { return numbers(item) != numbers(*begin); });
    if (end - begin > 1)
      std::sort(begin, end, [&](const Order& a, const Order& b) { return is_before(a.index, b.index); });
    begin = end;
  }
}

uint64_t text_order(std::string_view text) {
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof(out); ++i) out = out << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
  return out;
}

// ---- The display order of maps: by value if values are numbers or aggregates, otherwise by key.

namespace {

template <class T>
int compare(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

// A signed or unsigned 64-bit number; compares by value.
struct Number {
  bool is_negative = false;
  uint64_t bits = 0;
};

int compare(Number a, Number b) {
  if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
  return compare(a.bits, b.bits);
}

Number number_of(int64_t value) { return {value < 0, static_cast<uint64_t>(value)}; }

uint64_t sum(const std::vector<uint64_t>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
}

Number rank_of(const StatsValue& stats) {
  const int64_t number = average(stats);
  return stats.is_signed ? number_of(number) : Number{false, static_cast<uint64_t>(number)};
}

// The number by which a value is ordered; nullopt if values of its kind are not.
std::optional<Number> rank(const Value& value) {
  if (const auto* v = std::get_if<int64_t>(&value.node)) return number_of(*v);
  if (const auto* v = std::get_if<uint64_t>(&value.node)) return Number{false, *v};
  if (const auto* v = std::get_if<EnumValue>(&value.node)) return number_of(v->number);
  if (const auto* v = std::get_if<StatsValue>(&value.node)) return rank_of(*v);
  if (const auto* v = std::get_if<HistValue>(&value.node)) return Number{false, sum(v->buckets)};
  if (const auto* v = std::get_if<LhistValue>(&value.node)) return Number{false, sum(v->buckets)};
  if (const auto* v = std::get_if<TseriesValue>(&value.node))
    return Number{false, v->points.empty() ? 0 : v->points.back().start_ns};
  return std::nullopt;
}

int compare(const Value& a, const Value& b);

int compare(const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (const int order = compare(a[i], b[i]); order != 0) return order;
  return compare(a.size(), b.size());
}

int compare(const StackValue& a, const StackValue& b) {
  for (size_t i = 0; i < std::min(a.frames.size(), b.frames.size()); ++i)
    if (const int order = compare(a.frames[i]->address, b.frames[i]->address); order != 0) return order;
  return compare(a.frames.size(), b.frames.size());
}

int compare(const Value& a, const Value& b) {
  if (a.node.index() != b.node.index()) return compare(a.node.index(), b.node.index());
  if (const auto* v = std::get_if<bool>(&a.node)) return compare(*v, std::get<bool>(b.node));
  // Unsigned keys are compared as signed: kernel addresses precede small numbers.
  if (const auto* v = std::get_if<uint64_t>(&a.node))
    return compare(static_cast<int64_t>(*v), static_cast<int64_t>(std::get<uint64_t>(b.node)));
  if (const auto ranked = rank(a)) return compare(*ranked, *rank(b));
  if (const auto* v = std::get_if<PointerValue>(&a.node))
    return compare(v->address, std::get<PointerValue>(b.node).address);
  if (const auto* v = std::get_if<StringValue>(&a.node)) return compare(v->text, std::get<StringValue>(b.node).text);
  if (const auto* v = std::get_if<BufferValue>(&a.node)) return compare(v->bytes, std::get<BufferValue>(b.node).bytes);
  if (const auto* v = std::get_if<TextValue>(&a.node)) return compare(v->text, std::get<TextValue>(b.node).text);
  if (const auto* v = std::get_if<StackValue>(&a.node)) return compare(*v, std::get<StackValue>(b.node));
  if (const auto* v = std::get_if<ListValue>(&a.node)) return compare(v->items, std::get<ListValue>(b.node).items);
  if (const auto* v = std::get_if<TupleValue>(&a.node)) return compare(v->items, std::get<TupleValue>(b.node).items);
  if (const auto* v = std::get_if<RecordValue>(&a.node)) return compare(v->items, std::get<RecordValue>(b.node).items);
  return 0;
}

// What values and keys must have in common to be ordered by numbers. All of a map have.
size_t shape_of(const Value& value) {
  constexpr size_t kKinds = std::variant_size_v<decltype(Value::node)>;
  const auto* tuple = std::get_if<TupleValue>(&value.node);
  const size_t inner = tuple == nullptr || tuple->items.empty() ? 0 : 1 + shape_of(tuple->items[0]);
  return value.node.index() + kKinds * inner;
}

// A number that is the greater the later the value comes; 0 if values of its kind have no order.
uint64_t value_order(const Value& value) {
  const std::optional<Number> number = rank(value);
  if (!number) return 0;
  const auto* stats = std::get_if<StatsValue>(&value.node);
  const bool is_signed =
      stats != nullptr ? stats->is_signed
                       : std::holds_alternative<int64_t>(value.node) || std::holds_alternative<EnumValue>(value.node);
  return is_signed ? number->bits ^ kSignBit : number->bits;
}

// The same of a key, of a tuple that of its first item: equal numbers decide nothing.
uint64_t key_order(const Value& key) {
  if (const auto* v = std::get_if<bool>(&key.node)) return *v ? 1 : 0;
  if (const auto* v = std::get_if<int64_t>(&key.node)) return static_cast<uint64_t>(*v) ^ kSignBit;
  if (const auto* v = std::get_if<uint64_t>(&key.node)) return *v ^ kSignBit;
  if (const auto* v = std::get_if<PointerValue>(&key.node)) return v->address;
  if (const auto* v = std::get_if<StringValue>(&key.node)) return text_order(v->text);
  if (const auto* v = std::get_if<TextValue>(&key.node)) return text_order(v->text);
  const auto* tuple = std::get_if<TupleValue>(&key.node);
  return tuple == nullptr || tuple->items.empty() ? 0 : key_order(tuple->items[0]);
}

}  // namespace

int compare_keys(const Value& a, const Value& b) { return compare(a, b); }

void sort_for_display(std::vector<MapEntry>& entries) {
  std::vector<Order> items;
  items.reserve(entries.size());
  bool are_alike = true;
  for (const MapEntry& entry : entries) {
    are_alike &= shape_of(entry.key) == shape_of(entries[0].key) && shape_of(entry.value) == shape_of(entries[0].value);
    const auto index = static_cast<uint32_t>(items.size());
    items.push_back(are_alike ? Order{value_order(entry.value), key_order(entry.key), index} : Order{0, 0, index});
  }
  if (!are_alike)
    for (Order& item : items) item = {0, 0, item.index};
  sort_by_numbers(items, [&](uint32_t a, uint32_t b) {
    const auto ranked_a = rank(entries[a].value), ranked_b = rank(entries[b].value);
    const int by_value = ranked_a && ranked_b ? compare(*ranked_a, *ranked_b) : 0;
    return by_value != 0 ? by_value < 0 : compare(entries[a].key, entries[b].key) < 0;
  });
  // In place, one cycle of the permutation after the other: a copy would take as much memory as the map.
  for (uint32_t begin = 0; begin < items.size(); ++begin) {
    if (items[begin].index == begin) continue;
    MapEntry first = std::move(entries[begin]);
    uint32_t to = begin;
    for (uint32_t from = items[to].index; from != begin; from = items[to].index) {
      entries[to] = std::move(entries[from]);
      items[to].index = to;
      to = from;
    }
    entries[to] = std::move(first);
    items[to].index = to;
  }
}

// ---- Merges per-CPU values, whose layout is in program/layout.h.

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

// ---- Values as text, for `%s` and print().

namespace {

bool is_shown_as_is(const std::string& text, const TextStyle& style) {
  return !style.is_for_terminal || (style.own_texts && style.own_texts->contains(text));
}

constexpr uint8_t kPerfMode = 1, kRawMode = 2, kBuildIdMode = 3;  // types::StackMode

std::string unnamed_text(const Frame& frame, uint8_t mode) {
  if (mode == kPerfMode || !frame.module_address) return fmt::format("{:#x}", frame.address);
  const std::string_view file = base_name(frame.module);
  return fmt::format("{}+{:#x}", file.starts_with('[') ? std::string(file) : fmt::format("[{}]", file),
                     *frame.module_address);
}

// "main+42", "main+42@/src/main.c:12", "[inlined] twice@/src/main.c:7", "[postgres]+0x1f4b", "0x55d1c0de". An inlined
// function is just "twice" as for perf, where its file says that it is inlined.
std::string symbol_text(const Frame& frame, uint8_t mode) {
  if (frame.address == 0 && !frame.symbol.empty()) return frame.symbol;  // a mark
  const std::string name = frame.symbol.empty() ? unnamed_text(frame, mode)
                           : frame.is_inlined   ? (mode == kPerfMode ? "" : "[inlined] ") + frame.symbol
                                                : fmt::format("{}+{}", frame.symbol, frame.offset);
  const bool has_place = !frame.file.empty() && mode != kPerfMode;
  return !has_place ? name : fmt::format("{}@{}:{}", name, frame.file, frame.line);
}

void append_frame(std::string& out, const Frame& frame, const StackValue& stack, const TextStyle& style) {
  const auto to = std::back_inserter(out);
  switch (stack.mode) {
    case kPerfMode:
      fmt::format_to(to, "\t{:x} {}", frame.address, shown_name(symbol_text(frame, stack.mode), style));
      if (frame.is_inlined)
        out += " (inlined)";
      else if (stack.is_user)
        fmt::format_to(to, " ({})", frame.module.empty() ? "[unknown]" : shown_name(frame.module, style));
      break;
    case kRawMode: fmt::format_to(to, "{:x}", frame.address); break;
    case kBuildIdMode:
      if (frame.build_id.empty()) {
        fmt::format_to(to, "{:#x}", frame.address);
      } else {
        fmt::format_to(to, "{} {:#x}", frame.build_id, frame.offset);
      }
      break;
    default: out.append("        ").append(shown_name(symbol_text(frame, stack.mode), style));
  }
  out += '\n';
}

std::string stack_text(const StackValue& stack, const TextStyle& style) {
  std::string out = "\n";
  if (stack.problem) out += fmt::format("        [{}]\n", *stack.problem);
  for (const auto& frame : stack.frames) append_frame(out, *frame, stack, style);
  return out;
}

// `number` is the total or the average.
std::string stats_text(const StatsValue& stats, int64_t number) {
  return stats.is_signed ? std::to_string(number) : std::to_string(static_cast<uint64_t>(number));
}

// How the start of an interval is shown: with the fraction of a second that the interval needs.
struct ClockFormat {
  std::string_view heading;
  size_t digits;  // of the fraction
  uint64_t unit_ns;
};

ClockFormat clock_format(uint64_t interval_ns) {
  if (interval_ns % kNsPerSecond == 0) return {"hh:mm:ss", 0, kNsPerSecond};
  if (interval_ns % 1'000'000 == 0) return {"hh:mm:ss.ms", 3, 1'000'000};
  if (interval_ns % 1'000 == 0) return {"hh:mm:ss.us", 6, 1'000};
  return {"hh:mm:ss.ns", 9, 1};
}

// Local times that follow each other: most are in the minute of the one before.
class LocalClock {
 public:
  const tm& at(time_t seconds) {
    const time_t second = local_.tm_sec + (seconds - seconds_);
    if (is_known_ && second >= 0 && second < 60)
      local_.tm_sec = static_cast<int>(second);
    else
      ::localtime_r(&seconds, &local_);
    is_known_ = true;
    seconds_ = seconds;
    return local_;
  }

 private:
  time_t seconds_ = 0;
  tm local_ = {};
  bool is_known_ = false;
};

void append_clock(std::string& out, uint64_t ns, const ClockFormat& format, LocalClock& clock) {
  const tm& local = clock.at(static_cast<time_t>(ns / kNsPerSecond));
  char separator = 0;
  for (const int number : {local.tm_hour, local.tm_min, local.tm_sec}) {
    if (separator != 0) out += separator;
    append_decimal(out, static_cast<uint64_t>(number), 2);
    separator = ':';
  }
  if (format.digits == 0) return;
  out += '.';
  append_decimal(out, ns % kNsPerSecond / format.unit_ns, format.digits);
}

constexpr size_t kGraphWidth = 53;  // with its two edges

// The column of a value between the minimum, on the left edge, and the maximum, on the right one.
size_t graph_place(uint64_t value, uint64_t min, uint64_t max) {
  const uint64_t range = max - min;
  const auto columns = static_cast<__uint128_t>(value - min) * (kGraphWidth - 1);
  return static_cast<size_t>(columns / range);
}

// A row for each interval, with a star at the value's position between minimum and maximum, and a dot at that of 0 if
// it is between them.
void append_tseries(std::string& out, const TseriesValue& series) {
  // Signed values are counted from the smallest one, which keeps their order.
  const uint64_t zero = series.is_signed ? uint64_t{1} << 63 : 0;
  const auto position = [&](int64_t value) { return static_cast<uint64_t>(value) + zero; };
  const auto append = [&](uint64_t value) {
    series.is_signed ? append_decimal(out, static_cast<int64_t>(value - zero)) : append_decimal(out, value);
  };
  uint64_t min = UINT64_MAX, max = 0;
  for (const TseriesPoint& point : series.points) {
    if (!point.value) continue;
    min = std::min(min, position(*point.value));
    max = std::max(max, position(*point.value));
  }
  if (min > max) return;
  if (min == max) {
    if (min > 0) --min;
    if (max < UINT64_MAX) ++max;
  }
  const ClockFormat format = clock_format(series.interval_ns);
  const size_t margin = format.digits == 0 ? 9 : format.digits + 10;
  const auto append_scale = [&] {
    out.append(margin, ' ');
    const size_t start = out.size();
    append(min);
    fill_up(out, start, kGraphWidth - 1);
    append(max);
    out += '\n';
  };
  append_scale();
  const size_t heading = out.size();
  out += format.heading;
  fill_up(out, heading, margin);
  out.append("|").append(kGraphWidth - 2, '_').append("|\n");
  std::string row(kGraphWidth, ' ');
  row.front() = row.back() = '|';
  if (min < zero && zero < max) row[graph_place(zero, min, max)] = '.';
  LocalClock clock;
  for (const TseriesPoint& point : series.points) {
    append_clock(out, point.start_ns, format, clock);
    out += ' ';
    const size_t graph = out.size();
    out.append(row).append(" ");
    if (point.value) out[graph + graph_place(position(*point.value), min, max)] = '*';
    point.value ? append(position(*point.value)) : void(out += '-');
    out += '\n';
  }
  out.append(margin, ' ').append("v").append(kGraphWidth - 2, '_').append("v\n");
  append_scale();
}

// Appends values to one string, as a dump of a large struct has thousands of them.
class ValueWriter {
 public:
  ValueWriter(std::string& out, const TextStyle& style, uint32_t indent) : out_(out), style_(style), indent_(indent) {}

  void without_parentheses(const TupleValue& v) { list("", v.items, ", ", ""); }

  void operator()(std::monostate) { out_ += "null"; }
  void operator()(bool v) { out_ += v ? "true" : "false"; }
  void operator()(int64_t v) { number(v); }
  void operator()(uint64_t v) { number(v); }
  void operator()(const EnumValue& v) { v.name.empty() ? number(v.number) : name(v.name); }
  void operator()(const PointerValue& v) { fmt::format_to(std::back_inserter(out_), "{:#x}", v.address); }
  void operator()(const StringValue& v) {
    name(v.text);
    if (v.is_truncated) out_ += style_.truncation_trailer;
  }
  void operator()(const BufferValue& v) { out_ += escaped(v.bytes); }
  void operator()(const TextValue& v) { v.is_formatted ? void(out_ += v.text) : name(v.text); }
  void operator()(const StackValue& v) { out_ += stack_text(v, style_); }
  void operator()(const ListValue& v) { list("[", v.items, ",", "]"); }
  void operator()(const TupleValue& v) { list("(", v.items, ", ", ")"); }
  void operator()(const RecordValue& v) {
    ++depth_;
    style_.is_c ? lines(v) : line(v);
    --depth_;
  }
  void operator()(const HistValue& v) { append_histogram(out_, v, 0, {.has_percentiles = style_.has_percentiles}); }
  void operator()(const LhistValue& v) { append_histogram(out_, v, {.has_percentiles = style_.has_percentiles}); }
  void operator()(const StatsValue& v) {
    out_ += v.only_average ? stats_text(v, average(v))
                           : fmt::format("{{ .count = {}, .average = {}, .total = {} }}", v.count,
                                         stats_text(v, average(v)), stats_text(v, v.total));
  }
  void operator()(const TseriesValue& v) { append_tseries(out_, v); }
  void operator()(const RecentValue& v) {
    if (is_outermost_) return lines_of(v);
    list("[", v.items, ",", "]");
  }

 private:
  void value(const Value& value) {
    is_outermost_ = false;
    std::visit(*this, value.node);
  }

  void lines_of(const RecentValue& recent) {
    for (size_t i = 0; i < recent.items.size(); ++i) {
      if (i > 0) out_ += '\n';
      value(recent.items[i]);
    }
  }

  // Without a copy where nothing is escaped: a map has millions.
  void name(const std::string& text) { style_.is_for_terminal ? out_ += shown_name(text, style_) : out_ += text; }

  template <class Int>
  void number(Int value) {
    append_decimal(out_, value);
  }

  void list(std::string_view begin, const std::vector<Value>& items, std::string_view separator, std::string_view end) {
    out_ += begin;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += separator;
      if (style_.max_items != 0 && i == style_.max_items) {
        out_ += "...";
        break;
      }
      value(items[i]);
    }
    out_ += end;
  }

  // Calls `each` for the members to show, and `cut` if max_items omits some.
  template <class Each, class Cut>
  void members(const RecordValue& record, const Each& each, const Cut& cut) {
    uint32_t shown = 0;
    for (size_t i = 0; i < record.items.size(); ++i) {
      if (!style_.has_zeros && is_zero(record.items[i])) continue;
      if (style_.max_items != 0 && shown++ == style_.max_items) return cut();
      each(record.names->members[i], record.items[i]);
    }
  }

  bool is_too_deep() const { return style_.max_depth != 0 && depth_ > style_.max_depth; }

  // { .a = 1, .b = 2 }
  void line(const RecordValue& record) {
    if (is_too_deep()) return void(out_ += "{ ... }");
    bool is_first = true;
    const auto begin = [&] {
      out_ += is_first ? "{ " : ", ";
      is_first = false;
    };
    members(
        record,
        [&](const std::string& name, const Value& item) {
          begin();
          name_of(name);
          value(item);
        },
        [&] {
          begin();
          out_ += "...";
        });
    out_ += is_first ? "{}" : " }";
  }

  // (struct s){ and a line for each member.
  void lines(const RecordValue& record) {
    if (record.names && !record.names->type.empty()) {
      out_ += "(";
      name(record.names->type);
      out_ += ")";
    }
    if (is_too_deep()) return void(out_ += "{ ... }");
    bool is_empty = true;
    const auto begin = [&] {
      if (is_empty) out_ += "{";
      is_empty = false;
      new_line(depth_);
    };
    members(
        record,
        [&](const std::string& name, const Value& item) {
          begin();
          name_of(name);
          member(item);
          out_ += ",";
        },
        [&] {
          begin();
          out_ += "...";
        });
    if (is_empty) return void(out_ += "{}");
    new_line(depth_ - 1);
    out_ += "}";
  }

  // Quotes text that C has no literal for.
  void member(const Value& item) {
    const auto* text = std::get_if<StringValue>(&item.node);
    if (text == nullptr) return value(item);
    out_.append("\"").append(escaped(text->text)).append(text->is_truncated ? style_.truncation_trailer : "") += '"';
  }

  void name_of(const std::string& name) {
    if (name.empty()) return;
    out_ += ".";
    this->name(name);
    out_ += " = ";
  }

  void new_line(uint32_t depth) {
    constexpr uint32_t kIndent = 2;
    out_ += '\n';
    out_.append(indent_ + size_t{kIndent} * depth, ' ');
  }

  std::string& out_;
  const TextStyle& style_;
  uint32_t indent_;
  bool is_outermost_ = true;
  uint32_t depth_ = 0;  // of the record that is being written; the outermost is 1
};

struct IsZero {
  bool operator()(bool v) const { return !v; }
  bool operator()(int64_t v) const { return v == 0; }
  bool operator()(uint64_t v) const { return v == 0; }
  bool operator()(const EnumValue& v) const { return v.number == 0; }
  bool operator()(const PointerValue& v) const { return v.address == 0; }
  bool operator()(const StringValue& v) const { return v.text.empty(); }
  bool operator()(const ListValue& v) const { return std::ranges::all_of(v.items, is_zero); }
  bool operator()(const TupleValue& v) const { return std::ranges::all_of(v.items, is_zero); }
  bool operator()(const RecordValue& v) const { return std::ranges::all_of(v.items, is_zero); }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

}  // namespace

std::string shown_name(std::string name, const TextStyle& style) {
  return is_shown_as_is(name, style) ? std::move(name) : printable_line(exact_utf8(name));
}

std::string shown_memory(std::string text, const TextStyle& style) {
  return is_shown_as_is(text, style) ? std::move(text) : printable(text);
}

bool is_zero(const Value& value) { return std::visit(IsZero(), value.node); }

std::string to_text(const Value& value, const TextStyle& style, uint32_t indent) {
  std::string out;
  std::visit(ValueWriter(out, style, indent), value.node);
  return out;
}

void append_text(std::string& out, const Value& value, const TextStyle& style) {
  std::visit(ValueWriter(out, style, 0), value.node);
}

std::string key_text(const Value& key, const TextStyle& style) {
  std::string out;
  append_key_text(out, key, style);
  return out;
}

void append_key_text(std::string& out, const Value& key, const TextStyle& style) {
  if (const auto* tuple = std::get_if<TupleValue>(&key.node))
    ValueWriter(out, style, 0).without_parentheses(*tuple);
  else
    append_text(out, key, style);
}

}  // namespace espy::output
