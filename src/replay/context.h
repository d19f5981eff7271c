// The context of a program over a recording: a record with the fields of an event.
//
// A number has 8 bytes; chars and bytes have those of their type; a text is found by a u32, its offset in the low half
// and its length in the high half (spec::Recipe::kDataLoc), and lies behind the fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "recording/reader.h"

namespace espy::replay {

struct ContextShape {
  std::vector<std::optional<uint32_t>> places;  // offsets of the fields; nullopt: the field is in no context
  std::vector<uint32_t> sizes;                  // of chars and bytes
  uint32_t size_bytes = 0;                      // without texts
};

// The layout may be of any content: fields that are larger than any context are left out.
ContextShape context_shape(const recording::Layout& layout, kernel::Kernel& kernel, types::Types& types);

class Context {
 public:
  Context(const recording::Layout& layout, kernel::Kernel& kernel, types::Types& types)
      : layout_(layout), shape_(context_shape(layout, kernel, types)) {}

  // Valid until the next call.
  std::span<std::byte> fill(const recording::Event& event);

 private:
  void append_text(uint32_t place, std::string_view text);

  const recording::Layout& layout_;
  ContextShape shape_;
  std::vector<std::byte> record_;
};

}  // namespace espy::replay
