// Types that are made of others: which structs may be defined, and the layouts of recent(), of strings with a length,
// of Rust enums.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "types/type.h"

namespace espy::types {

// ---- Parts: which structs may be defined, given what they contain by value.
//
// The types of a traced program are untrusted. A struct that contains itself is infinite, and nested structs of size
// zero, each with two members of the next type, expand exponentially. Such structs stay incomplete, so code that
// recurses through the members of a value terminates and visits a bounded number of them.

class Parts {
 public:
  // Returns whether a struct with these members may be defined; if not, it never will be. Requires that the structs
  // among the members, also as elements of arrays, are complete, unless they cannot be completed. Such structs are
  // refused from then on, so that these counts stay true.
  bool may_define(const Types& types, TypeId struct_type, std::span<const Member> members);
  bool is_refused(TypeId struct_type) const { return refused_.contains(struct_type); }

 private:
  struct Extent {
    uint32_t count = 1;  // of members, including members of inner structs, and of the struct itself
    uint32_t depth = 1;
  };
  std::map<TypeId, Extent> defined_;
  std::set<TypeId> refused_;
};

// ---- The layout of the values that recent() keeps: program/layout.h has the meaning of each part.

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

// ---- Strings of an address and a length: Go's string, Rust's &str, C++'s std::string_view.

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

// ---- Rust enums whose variants have data: a struct of `variant`, the discriminant as an enum, and a member for each
// variant with data; these overlap.

inline constexpr std::string_view kDiscriminant = "variant";
inline constexpr std::string_view kVariantsName = "{variants}";  // of the enum; no name in C

// Begins the name of the enumerator for all numbers without one of their own. The variant with a niche has it: in
// Result<u32, String>, `Ok` is one impossible capacity of the String, and each other capacity is an `Err`.
inline constexpr char kOtherNumbers = '*';

// Returns the name of a number of an enum; "" if it has none.
inline std::string_view enumerator_name(const Type& enumeration, int64_t number) {
  for (const Enumerator& each : enumeration.enumerators)
    if (each.value == number && !each.name.starts_with(kOtherNumbers)) return each.name;
  for (const Enumerator& each : enumeration.enumerators)
    if (each.name.starts_with(kOtherNumbers)) return std::string_view(each.name).substr(1);
  return {};
}

// Returns the enum of the variants of a struct; null if the struct has none.
inline const Type* variants_of(const Types& types, const Type& type) {
  if (type.kind != Kind::kStruct || type.members.empty() || type.members[0].name != kDiscriminant) return nullptr;
  const Type& out = types[type.members[0].type];
  return out.kind == Kind::kEnum && out.name == kVariantsName ? &out : nullptr;
}

// Whether a member belongs to a variant.
inline bool is_variant(const Type& variants, const Member& member) {
  for (const Enumerator& each : variants.enumerators) {
    std::string_view name = each.name;
    if (name.starts_with(kOtherNumbers)) name.remove_prefix(1);
    if (name == member.name) return true;
  }
  return false;
}

}  // namespace espy::types
