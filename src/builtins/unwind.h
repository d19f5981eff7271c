// User stacks by tables instead of frame pointers, in BPF.
#pragma once

#include "lower/lowering.h"

namespace espy::builtins {

// Whether this kernel lets a program find a task's code and registers; the reason why not, "" if it does.
std::string cannot_unwind(kernel::Kernel& kernel, types::Types& types);

// Takes the current task's user stack: of a value of `type` (program/layout.h) the 16 bytes at `destination`. Where
// user space has not begun to fill the tables, runs `otherwise`.
void lower_unwound_stack(lower::Lowering& lowering, types::TypeId type, ir::ValueId pid, ir::ValueId destination,
                         source::Span span, const std::function<void()>& otherwise);

}  // namespace espy::builtins
