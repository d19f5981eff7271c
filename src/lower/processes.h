// Which processes a program acts in: with -p in that one, with --follow also in those that it has started since, and
// those that they have; else in all.
#pragma once

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

// The number of the process that runs, in the kernel's first pid namespace.
ir::ValueId current_process(ir::Builder& ir);

// The current thread's and process' numbers in a namespace: the address of u32 pid, u32 tgid; zeros where it is not in
// it.
ir::ValueId ids_in(ir::Builder& ir, const spec::PidNamespace& space);

// Ends the program here where the current process is not one of them.
void skip_other_processes(ir::Builder& ir, const ModuleContext& module);

// With --follow: the map of the processes that were started; before any program is made.
void add_followed_map(ModuleContext& module);
// ... and the programs that keep it. The kernel must tell its types.
void add_followers(ModuleContext& module);

}  // namespace espy::lower
