// Arithmetic and comparison of operands. A scalar is 64 bits wide in a register, extended by the sign of its type, and
// each result is normalized to the width of its type.
#pragma once

#include <cstdint>
#include <string>

#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/laundering.h"
#include "lower/memory.h"

namespace espy::lower {

class Arithmetic : Emitter {
 public:
  Arithmetic(ModuleContext& module, Functions& functions, Memory& memory, Conversions& conversions,
             Laundering& laundering)
      : Emitter(module, functions), memory_(memory), conversions_(conversions), laundering_(laundering) {}

  // `left` OP `right` for arithmetic operators, as a value of type `result`, by whose sign it divides: the checker
  // gives a signed one if an operand is signed. Pointers count elements.
  ValueId calculate(syntax::BinaryOp op, Operand left, Operand right, TypeId result);
  // 1 or 0, for comparisons of scalars.
  ValueId compare(syntax::BinaryOp op, Operand left, Operand right, bool is_unsigned);
  // 1 or 0, for comparisons of two strings by an operator other than == and !=: by their bytes, which are unsigned.
  ValueId compare_order(syntax::BinaryOp op, Operand left, Operand right);
  // 1 if two strings, buffers, tuples or structs are equal, else 0.
  ValueId equal_values(Operand left, Operand right);
  // The same for a string in our memory and a constant, whose bytes and NUL fit into the string's capacity.
  ValueId equal_text(Operand operand, std::string text);

 private:
  void add_missing_nul(Operand& left, Operand& right);
  ValueId divide(Op op, ValueId dividend, ValueId divisor);
  ValueId equal_bytes(ValueId left, ValueId right, uint32_t size_bytes);
  ValueId equal_bytes_by_loop(ValueId left, ValueId right, uint32_t size_bytes, uint32_t width);

  Memory& memory_;
  Conversions& conversions_;
  Laundering& laundering_;
};

}  // namespace espy::lower
