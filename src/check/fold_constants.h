// Arithmetic on constants, exactly as the programs do it: 64 bits, two's complement.
#pragma once

#include <optional>

#include "check/checked.h"

namespace espy::check {

// A number as the language sees a literal: its bits, and whether they are to be read as unsigned.
struct Number {
  int64_t bits = 0;
  bool is_unsigned = false;
  uint64_t as_unsigned() const { return static_cast<uint64_t>(bits); }
  bool operator==(const Number&) const = default;
};

// Nothing where the result does not fit 64 bits, or where the divisor is zero.
std::optional<Number> fold_binary(syntax::BinaryOp op, Number a, Number b);
std::optional<Number> fold_unary(syntax::UnaryOp op, Number a);  // ! ~ -

bool is_comparison(syntax::BinaryOp op);
bool is_logical(syntax::BinaryOp op);

// `bits` cut to the width of an integer type and extended again by its sign.
int64_t truncate(const types::Type& type, int64_t bits);

}  // namespace espy::check
