// Evaluation of operations on constants, by the definitions of docs/internals/ir.md.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace espy::opt {

// Returns `op` of one or two constants (unary operations ignore `b`); nullopt if the operation is not arithmetic.
std::optional<int64_t> evaluate(ir::Op op, int64_t a, int64_t b = 0);
bool evaluate(ir::Condition condition, int64_t a, int64_t b);

bool is_comparison(ir::Op op);  // eq to sle: the result is 0 or 1
bool is_commutative(ir::Op op);

}  // namespace espy::opt
