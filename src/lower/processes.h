// The process filter of -p and --follow: which processes a program acts in.
#pragma once

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

// The id of the current process, in the initial pid namespace.
ir::ValueId current_process(ir::Builder& ir);

// The ids of the current thread and process in a pid namespace: the address of u32 pid, u32 tgid; zeros if the task is
// not in it.
ir::ValueId ids_in(ir::Builder& ir, const spec::PidNamespace& space);

// Ends the program if the filter excludes the current process.
void skip_other_processes(ir::Builder& ir, const ModuleContext& module);

// With --follow, adds the map of the processes that were started. Requires that no program was lowered yet.
void add_followed_map(ModuleContext& module);
// With --follow, adds the programs that maintain the map. Requires the kernel's BTF.
void add_followers(ModuleContext& module);

}  // namespace espy::lower
