#include "output/order.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

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

}  // namespace espy::output
