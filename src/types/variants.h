// Rust enums whose variants have data: a struct of `variant`, the discriminant as an enum, and a member for each
// variant with data; these overlap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "types/type.h"

namespace espy::types {

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
