// The filters of -p, --follow and --cgroup: which processes a program acts in.
#pragma once

#include <cstdint>

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

// The id of the current process, in the initial pid namespace.
ir::ValueId current_process(ir::Builder& ir);

// The id of the current thread or process in a pid namespace, which is its own or one above it; 0 if it has none there.
ir::ValueId own_id(ir::Builder& ir, types::Types& types, kernel::Kernel& kernel, const spec::PidNamespace& space,
                   bool is_process);

// The name of the current thread: the address of kTaskNameBytes bytes, with zeros after its end.
constexpr uint32_t kTaskNameBytes = 16;  // TASK_COMM_LEN
ir::ValueId current_name(ir::Builder& ir);
// 1 if `name`, kTaskNameBytes bytes with zeros after its end, is one of --comm, else 0. Requires --comm.
ir::ValueId has_wanted_name(ir::Builder& ir, const spec::Config& config, ir::ValueId name);

// Ends the program if the filters of --cgroup, --comm, -p and --follow exclude the current task.
void skip_other_tasks(ir::Builder& ir, ModuleContext& module);
// Ends the program if the filter of -p and --follow excludes the current process.
void skip_other_processes(ir::Builder& ir, ModuleContext& module);

// With --cgroup, adds the map of the group. Requires that no program was lowered yet.
void add_cgroup_map(ModuleContext& module);
// With --follow, adds the map of the processes that were started. Requires that no program was lowered yet.
void add_followed_map(ModuleContext& module);
// With --follow, adds the programs that maintain the map. Requires the kernel's BTF.
void add_followers(ModuleContext& module);

// With -p and user probes, adds a program that counts a loss when the first thread of the process ends before the
// others. For the kernel, the process has the memory of that thread, so the filter of user probes lets nothing through
// any more. The same happens if another thread executes a program. Adds none without the kernel's BTF, or where
// lockdown keeps programs from reading tasks. Requires that the programs of all actions are there.
void add_first_thread_watch(ModuleContext& module);

}  // namespace espy::lower
