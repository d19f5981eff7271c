// Numbers in bytes that came from elsewhere: files, records, the kernel's memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace espy {

// Up to eight bytes from `at` as a number, the lowest first, as every CPU that we run on has them. Those behind the
// end of `bytes` are zeros.
inline uint64_t number_in(std::span<const std::byte> bytes, uint64_t at = 0, size_t size = 8) {
  uint64_t out = 0;
  if (at < bytes.size()) std::memcpy(&out, bytes.data() + at, std::min({size, sizeof(out), bytes.size() - at}));
  return out;
}

inline uint64_t number_in(std::string_view bytes, uint64_t at = 0, size_t size = 8) {
  return number_in(std::as_bytes(std::span(bytes)), at, size);
}

}  // namespace espy
