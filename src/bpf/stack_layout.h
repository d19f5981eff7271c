// Stack layout: assigns frame offsets to slots and spilled registers.
#pragma once

#include "bpf/machine.h"

namespace espy::bpf {

// Sets the offsets of the objects of `machine` and its stack_bytes. `function` is the IR that it was selected from,
// which determines the live ranges of slots.
void place_objects(const ir::Function& function, MachineFunction& machine);

}  // namespace espy::bpf
