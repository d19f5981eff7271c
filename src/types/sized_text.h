// Strings of an address and a length: Go's string, Rust's &str, C++'s std::string_view.
#pragma once

#include <cstdint>
#include <optional>

#include "types/type.h"

namespace espy::types {

struct SizedText {
  uint32_t address_offset_bytes = 0;
  uint32_t length_offset_bytes = 0;
};

// Returns the layout if the type is a struct of exactly a pointer to bytes and a 64-bit integer, else nullopt.
inline std::optional<SizedText> sized_text(const Types& types, TypeId id) {
  const Type& type = types[id];
  if (type.kind != Kind::kStruct || type.is_union || !type.complete || type.members.size() != 2) return std::nullopt;
  const auto is_address = [&](const Member& member) {
    const Type& each = types[member.type];
    return each.kind == Kind::kPointer && types[each.element].kind == Kind::kInt && types[each.element].size_bytes == 1;
  };
  const auto is_length = [&](const Member& member) {
    return types[member.type].kind == Kind::kInt && types[member.type].size_bytes == 8;
  };
  const Member& first = type.members[0];
  const Member& second = type.members[1];
  if (is_address(first) && is_length(second)) return SizedText{first.offset_bytes(), second.offset_bytes()};
  if (is_length(first) && is_address(second)) return SizedText{second.offset_bytes(), first.offset_bytes()};
  return std::nullopt;
}

}  // namespace espy::types
