// The IR as text: names, printer, reader; and its verifier.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/ir.h"

namespace espy::ir {

// ---- Conversion between names and the rows of ops.def and helpers.def, for the printer, the reader and messages.

std::string_view name(Condition condition);

std::optional<Op> find_op(std::string_view name);
std::optional<Helper> find_helper(std::string_view name);
std::optional<Condition> find_condition(std::string_view name);

// ---- Printer, reader and verifier of the IR. docs/internals/ir.md has the grammar; `read` accepts the output of
// `print`.

std::string print(const Function& function, const Module& module);
std::string print(const Module& module);

// Parses a module. The error message names the line.
Result<Module> read(std::string_view text);

// Verifies the invariants that every pass relies on and preserves: definitions dominate uses, operand counts, one
// terminator per block, target arguments match parameters, slots and widths are in range. Returns a message that names
// the function and the value, or "" if the module is valid.
std::string verify(const Module& module);

}  // namespace espy::ir
