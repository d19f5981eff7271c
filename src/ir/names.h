// Conversion between names and the rows of ops.def and helpers.def, for the printer, the reader and messages.
#pragma once

#include <optional>
#include <string_view>

#include "ir/ir.h"

namespace espy::ir {

std::string_view name(Condition condition);

std::optional<Op> find_op(std::string_view name);
std::optional<Helper> find_helper(std::string_view name);
std::optional<Condition> find_condition(std::string_view name);

}  // namespace espy::ir
