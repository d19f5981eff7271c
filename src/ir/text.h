// The IR as text, both ways, and its rules. docs/ir.md has the grammar; what `print` prints, `read` accepts.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/ir.h"

namespace espy::ir {

std::string print(const Function& function, const Module& module);
std::string print(const Module& module);

// The error names the line.
Result<Module> read(std::string_view text);

// What every pass may rely on: each use is dominated by its definition, operand counts, one end per block, target
// arguments match parameters, slots and widths in range. Returns a sentence naming the function and value, or "" if all
// is well.
std::string verify(const Module& module);

}  // namespace espy::ir
