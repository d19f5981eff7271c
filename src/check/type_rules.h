// How types meet: which one holds the values of two others, and what a literal does to it.
#pragma once

#include <cstdint>
#include <optional>

#include "check/checked.h"
#include "types/type.h"

namespace espy::check {

// The smallest type that holds `value`: signed, and uint64 above int64's range.
TypeId literal_type(types::Types& types, uint64_t value);
TypeId smallest_signed(types::Types& types, int64_t value);

// Whether the 64 bits of `value` (as signed, or as unsigned if `is_unsigned`) lie in the range of an integer type.
bool fits(const types::Type& type, int64_t value, bool is_unsigned);

// What holds the values of both, or nothing where no type does. `loses_sign` is set if the two are integers of
// different signs and 64 bits do not hold both.
std::optional<TypeId> unify(types::Types& types, TypeId a, TypeId b, bool* loses_sign = nullptr);

// The number that an aggregation is read as; invalid for those that are more than a number (stats, hist, ...).
TypeId reduced_type(types::Types& types, TypeId aggregation);

// Whether a value of type `from` may be put into a place of the fixed type `to` without a cast.
bool converts(types::Types& types, TypeId from, TypeId to);

bool is_truthy(const types::Type& type);  // may be a condition

bool is_int_like(const types::Type& type);  // integers, bool, enums

// The type of a variable, a map's value or an element of its key, found from everything that is ever put there.
// Literals that are not negative take the sign of the rest, so they are kept apart.
struct Slot {
  TypeId type;  // what is known so far; invalid: nothing
  TypeId firm;  // from all that was not such a literal
  uint64_t literal_max = 0;
  bool has_literal = false;
  bool is_declared = false;  // `type` is what the script said
  bool is_refined = false;   // ... and a value has said what that left open
  bool loses_sign = false;
  bool is_sign_reported = false;  // and the user has been told

  // A slot of the fixed type `type`.
  static Slot of_type(TypeId type);

  // Widens. False where the value has no place here.
  bool add(types::Types& types, TypeId value, const Constant& constant, bool is_literal);

 private:
  void refine(const types::Types& types, TypeId value);
  bool is_open_stack(const types::Types& types, TypeId value) const;
  void settle(types::Types& types);
};

}  // namespace espy::check
