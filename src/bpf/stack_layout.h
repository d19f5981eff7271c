// The stack: which bytes of the frame each slot and each spilled register has.
#pragma once

#include "bpf/machine.h"

namespace espy::bpf {

// Sets the offsets of `machine`'s objects and its stack_bytes. `function` is what it was selected from: slots are
// placed by where the IR uses them.
void place_objects(const ir::Function& function, MachineFunction& machine);

}  // namespace espy::bpf
