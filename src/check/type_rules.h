// The rules of types: which type holds the values of two others, what converts to what, which type a literal has. And
// arithmetic on constants.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "check/checked.h"
#include "types/type.h"

namespace espy::check {

// The smallest signed type that holds `value`; literal_type() gives uint64 above int64's range.
TypeId literal_type(types::Types& types, uint64_t value);
TypeId smallest_signed(types::Types& types, int64_t value);

// True if `value` (signed, or unsigned if `is_unsigned`) lies in the range of the integer type.
bool fits(const types::Type& type, int64_t value, bool is_unsigned);

// The type that holds the values of both; nullopt if there is none. Sets `loses_sign` if the two are integers of
// different signedness and 64 bits cannot hold both.
std::optional<TypeId> unify(types::Types& types, TypeId a, TypeId b, bool* loses_sign = nullptr);

// True if two types have the same members at the same places. They can be definitions of a struct in several files of a
// program, in two programs, or in a program and the script. Address spaces are not compared, nor what pointers to
// structs point to beyond its name.
bool is_alike(types::Types& types, TypeId a, TypeId b);

// The integer type that an aggregation is read as; invalid for aggregations that are not one number (stats, hist, ...).
TypeId reduced_type(types::Types& types, TypeId aggregation);

// True if a value of type `from` can be assigned to a declared type `to` without a cast.
bool converts(types::Types& types, TypeId from, TypeId to);

bool is_truthy(const types::Type& type);  // may be a condition

bool is_int_like(const types::Type& type);  // integers, bool, enums

// A value that is assigned. `is_literal`: its type is what its value alone gives it (see Checker::is_literal).
struct Given {
  TypeId type;
  Constant constant = {};
  bool is_literal = false;
  std::vector<Given> members = {};  // of a tuple or record that the script writes there, in its order
};

// The type of a variable, of a map's value or of a part of its key, inferred from all values assigned to it. Literals
// that are not negative take the signedness of the other values, so they are tracked apart, also in tuples and records.
struct Slot {
  TypeId type;  // so far; invalid if nothing is known
  TypeId firm;  // of all values that are not such literals
  uint64_t literal_max = 0;
  bool has_literal = false;
  bool is_declared = false;       // the script declares `type`
  bool is_refined = false;        // ... and a value has settled what the declaration leaves open
  bool loses_sign = false;        // signed and unsigned values became int64; for a declared type, the last value did
  bool is_sign_reported = false;  // in a diagnostic
  std::vector<Slot> members;      // of a tuple or record

  // A slot of the fixed type `type`.
  static Slot of_type(TypeId type);

  // Widens the type so that it holds the value; false if no type does, or the declared one does not. A declared integer
  // holds integers of its size and the other sign. An aggregation is a literal if its argument is one that both signs
  // hold: it has the sign of the others.
  bool add(types::Types& types, const Given& given);

 private:
  bool add_to_declared(types::Types& types, const Given& given);
  bool add_members(types::Types& types, const Given& given);
  void refine(const types::Types& types, TypeId value);
  bool is_open_stack(const types::Types& types, TypeId value) const;
  void settle(types::Types& types);
};

// ---- Arithmetic on constants: exact for literals, which must fit 64 bits

// An integer constant: its 64 bits, and whether they are unsigned.
struct Number {
  int64_t bits = 0;
  bool is_unsigned = false;
  uint64_t as_unsigned() const { return static_cast<uint64_t>(bits); }
  bool operator==(const Number&) const = default;
};

// nullopt if the result does not fit 64 bits, or if the divisor is zero.
std::optional<Number> fold_binary(syntax::BinaryOp op, Number a, Number b);
std::optional<Number> fold_unary(syntax::UnaryOp op, Number a);  // ! ~ -

bool is_comparison(syntax::BinaryOp op);
bool is_logical(syntax::BinaryOp op);

// `bits` truncated to the width of an integer type, and sign- or zero-extended.
int64_t truncate(const types::Type& type, int64_t bits);

}  // namespace espy::check
