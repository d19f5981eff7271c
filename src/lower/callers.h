// Counts the events of a program by the process that they happen in (program::Gates::caller_tables), if a budget is
// kept.
#pragma once

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

// Gives the program a table, if it may be detached to keep the budget. Requires that its hook is known.
void add_caller_table(ModuleContext& module, program::ProgramId id);

// Adds one event of the current process to the table of the program, if it has one. `is_preemptible`: whether another
// thread may run the program on the same CPU meanwhile.
void count_caller(ir::Builder& ir, const ModuleContext& module, program::ProgramId id, ir::ValueId cpu,
                  bool is_preemptible);

}  // namespace espy::lower
