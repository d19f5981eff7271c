// Unwinding of user stacks in BPF, by tables instead of frame pointers.
#pragma once

#include <functional>
#include <string>

#include "lower/lowering.h"

namespace espy::builtins {

// Returns why a program on this kernel cannot find a task's mappings and registers; "" if it can.
std::string cannot_unwind(kernel::Kernel& kernel, types::Types& types);

// Emits the capture of the current task's user stack: 16 bytes at `destination`, a value of the stack type `type`
// (program/layout.h). Runs `otherwise` as long as user space has not made the first tables.
void lower_unwound_stack(lower::Lowering& lowering, types::TypeId type, ir::ValueId pid, ir::ValueId destination,
                         source::Span span, const std::function<void()>& otherwise);

}  // namespace espy::builtins
