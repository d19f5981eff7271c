// Bounds-checked little-endian reads from untrusted bytes: files, records, memory of the kernel.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace espy {

static_assert(std::endian::native == std::endian::little);

// Returns the unsigned number in the `size_bytes` bytes at `offset`. If a size is above 8, only the first 8 bytes
// count. Bytes past the end of `bytes` read as 0.
inline uint64_t load_le(std::span<const std::byte> bytes, uint64_t offset = 0, size_t size_bytes = 8) {
  uint64_t out = 0;
  if (offset < bytes.size())
    std::memcpy(&out, bytes.data() + offset, std::min({size_bytes, sizeof(out), bytes.size() - offset}));
  return out;
}

inline uint64_t load_le(std::string_view bytes, uint64_t offset = 0, size_t size_bytes = 8) {
  return load_le(std::as_bytes(std::span(bytes)), offset, size_bytes);
}

// Returns the T at `offset`, which need not be aligned; nullopt if it does not lie within `bytes`.
template <class T>
requires std::is_trivially_copyable_v<T> std::optional<T> load_struct(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(out));
  return out;
}

// A cursor over bytes that the caller keeps alive. A read past the end clears `ok`, moves the cursor to the end, and
// returns 0 or an empty view, as does every read after it.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return offset_ >= bytes_.size(); }
  size_t offset() const { return offset_; }
  size_t remaining_bytes() const { return bytes_.size() - offset_; }

  // Requires a size of at most 8.
  uint64_t take_le(size_t size_bytes) { return load_le(take_bytes(size_bytes), 0, size_bytes); }
  template <std::integral T>
  T take_le() {
    return static_cast<T>(take_le(sizeof(T)));
  }

  std::string_view take_bytes(uint64_t count) {
    if (count > remaining_bytes()) {
      fail();
      return {};
    }
    offset_ += count;
    return bytes_.substr(offset_ - count, count);
  }

  // Returns the text up to the next NUL, and moves past the NUL.
  std::string_view take_string() {
    const size_t end = bytes_.find('\0', offset_);
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    const std::string_view text = take_bytes(end - offset_);
    ++offset_;
    return text;
  }

  // LEB128 (DWARF 5, 7.6). Bits above the 64th are dropped.
  uint64_t take_uleb128() { return take_leb128().value; }
  int64_t take_sleb128() {
    const Leb128 number = take_leb128();
    if (!number.is_negative || number.bits >= 64) return static_cast<int64_t>(number.value);
    return static_cast<int64_t>(number.value << (64 - number.bits)) >> (64 - number.bits);
  }

  void fail() {
    ok_ = false;
    offset_ = bytes_.size();
  }

 private:
  struct Leb128 {
    uint64_t value = 0;
    unsigned bits = 0;
    bool is_negative = false;  // as a signed number
  };
  Leb128 take_leb128() {
    Leb128 out;
    uint8_t byte = 0x80;
    while ((byte & 0x80) != 0 && ok_) {
      byte = take_le<uint8_t>();
      if (out.bits < 64) out.value |= uint64_t{byte & 0x7fU} << out.bits;
      out.bits += 7;
    }
    out.is_negative = (byte & 0x40) != 0;
    return out;
  }

  std::string_view bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace espy
