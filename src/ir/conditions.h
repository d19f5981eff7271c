// The algebra of conditions.
#pragma once

#include <optional>

#include "ir/ir.h"

namespace espy::ir {

Condition as_condition(Op comparison);  // eq to sle
// The condition that holds when `condition` does not; nothing for `test`.
std::optional<Condition> negation(Condition condition);
// The condition with its operands exchanged.
Condition mirrored(Condition condition);

}  // namespace espy::ir
