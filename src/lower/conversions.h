// Operands between types and places: into our memory, into another type, into the bytes of a larger object.
#pragma once

#include <cstdint>
#include <vector>

#include "lower/emitter.h"
#include "lower/memory.h"
#include "lower/reads.h"

namespace espy::lower {

class Conversions : Emitter {
 public:
  Conversions(ModuleContext& module, Functions& functions, Memory& memory, Reads& reads)
      : Emitter(module, functions), memory_(memory), reads_(reads) {}

  // See Lowering for these.
  Operand convert(Operand operand, TypeId to);
  Operand in_our_memory(Operand operand);
  // The same with bytes that are aligned to 8, for a value that is at one of several addresses.
  Operand aligned(Operand operand);
  void store(ValueId address, Operand operand);

  // Stores the operand as a value of type `to`.
  void store_converted(ValueId address, Operand operand, TypeId to);
  // Truncates or extends a 64-bit result to the width of its type.
  ValueId normalize(ValueId value, TypeId type);
  // The member of `from` that `of`'s member is made from: of records the one of the same name, else the one at its
  // place.
  static const types::Member& counterpart(const types::Type& of, const types::Type& from, size_t member);
  // The number that an aggregation stands for where a number is wanted, such as the average of an avg().
  Operand reduce(Operand aggregate, TypeId to);

 private:
  void store_scalar(ValueId address, ValueId value, uint32_t size_bytes);
  void store_members(ValueId address, Operand operand, TypeId to);
  void mark_used(TypeId id, uint32_t at_bits, std::vector<uint8_t>& used);
  void zero_padding(ValueId address, TypeId id);
  void copy_string(ValueId destination, Operand operand, TypeId to);
  Operand convert_scalar(Operand operand, TypeId to);
  Operand bytes_as_scalar(Operand operand, TypeId to);
  Operand padded_copy(Operand operand, TypeId to);
  bool is_by_member(TypeId from, TypeId to) const;
  bool are_strings(TypeId from, TypeId to) const;

  Memory& memory_;
  Reads& reads_;
};

}  // namespace espy::lower
