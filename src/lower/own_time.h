// The time of a program by its own clock, where the kernel does not measure it.
#pragma once

#include "ir/ir.h"
#include "program/program.h"

namespace espy::lower {

// Makes a program's main function add its runs and their time to program.own_times while user space has set the switch
// there. Requires that the switch and the times have their places.
void add_own_time(const program::Program& program, program::ProgramId id, ir::Function& main);

}  // namespace espy::lower
