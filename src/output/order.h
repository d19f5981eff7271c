// The order of a map's entries, by numbers: that of the value, then one that tells most keys apart.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace espy::output {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

struct Order {
  uint64_t by_value = 0;
  uint64_t by_key = 0;
  uint32_t index = 0;  // of the entry
};

// Sorts ascending. `is_before`: whether the first of two entries, given by their indices, comes first if their numbers
// are equal.
void sort_by_numbers(std::vector<Order>& items, const std::function<bool(uint32_t, uint32_t)>& is_before);

// The first characters of a text as a number, in the same order.
uint64_t text_order(std::string_view text);

}  // namespace espy::output
