// The entries of a map with many keys, in a fraction of the memory of Values: keys as the bytes that the kernel has,
// values as numbers. They are sorted like that, and become Values when they are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "output/decode.h"

namespace espy::output {

class CompactEntries {
 public:
  // True if the bytes of a key determine its place in the order, and decoded values are int64_t or uint64_t.
  static bool fits(const types::Types& types, types::TypeId key, types::TypeId value);

  CompactEntries() = default;
  // Requires that they fit. What `context` refers to must outlive the entries.
  CompactEntries(const DecodeContext& context, types::TypeId key);

  void add(std::span<const std::byte> key, const Value& value);
  void sort();  // as sort_for_display()

  size_t size() const { return numbers_.size(); }
  MapEntry at(size_t index) const;  // in display order, once they are sorted

 private:
  std::span<const std::byte> key_bytes(uint32_t index) const {
    return std::span(keys_).subspan(size_t{index} * size_bytes_, size_bytes_);
  }

  const DecodeContext* context_ = nullptr;
  types::TypeId key_ = {};
  uint32_t size_bytes_ = 0;  // of a key
  bool is_signed_ = false;   // the numbers
  std::vector<std::byte> keys_;
  std::vector<uint64_t> numbers_;
  std::vector<uint32_t> order_;
};

}  // namespace espy::output
