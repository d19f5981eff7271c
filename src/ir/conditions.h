// Negation, mirroring and evaluation of branch conditions.
#pragma once

#include <optional>

#include "ir/ir.h"

namespace espy::ir {

Condition as_condition(Op comparison);  // eq to sle
// Returns the negation; nullopt for `test`.
std::optional<Condition> negation(Condition condition);
// Returns the equivalent condition with exchanged operands.
Condition mirrored(Condition condition);

}  // namespace espy::ir
