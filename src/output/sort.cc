// The display order of maps: by value if values are numbers or aggregates, otherwise by key.
#include <algorithm>
#include <numeric>

#include "output/decode.h"
#include "output/divide.h"
#include "output/order.h"

namespace espy::output {

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

}  // namespace espy::output
