// The processes that a process of -p --follow has started before espy came: they are followed as those that it starts
// from then on.
#pragma once

#include <cstdint>
#include <vector>

#include "load/machine.h"
#include "program/program.h"

namespace espy::runtime {

// Adds the children of a process, their children, and so on, to the map of processes that are followed. The programs
// that maintain the map must be attached. What these processes start meanwhile is not missed: a process that is not in
// the map yet is told by its event. Returns the processes that were there. Fails if the events cannot be had, or the
// map is full. The ids must be of the initial pid namespace.
Result<std::vector<uint32_t>> follow_existing_children(load::Machine& machine, const program::Program& program,
                                                       uint32_t pid);

}  // namespace espy::runtime
