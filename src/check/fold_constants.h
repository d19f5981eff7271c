// Arithmetic on constants: exact for literals, which must fit 64 bits.
#pragma once

#include <cstdint>
#include <optional>

#include "check/checked.h"

namespace espy::check {

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
