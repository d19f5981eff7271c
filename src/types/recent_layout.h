// The layout of the values that recent() keeps: program/layout.h has the meaning of each part.
#pragma once

#include <bit>
#include <cstdint>

namespace espy::types {

// The parts of a recent() of `count` values of `value_bytes`, as offsets in bytes.
struct RecentLayout {
  static constexpr uint32_t kStampsOffset = 8;  // after `taken`
  static constexpr uint32_t kFewestSlots = 8;   // so that some CPUs can add at the same time
  uint32_t slots = kFewestSlots;                // a power of two
  uint32_t stride_bytes = 8;                    // from one value to the next
  uint32_t values_offset = 16;
  uint64_t size_bytes = 0;  // of all

  constexpr RecentLayout(uint32_t count, uint32_t value_bytes)
      : slots(count < kFewestSlots ? kFewestSlots : std::bit_ceil(count)),
        stride_bytes(value_bytes < 8 ? 8 : (value_bytes + 7) & ~7U),
        values_offset(kStampsOffset + slots * 8),
        size_bytes(values_offset + uint64_t{slots} * stride_bytes) {}
};

}  // namespace espy::types
