// Places at which the kernel's own probe would break the program.
//
// A return probe replaces the return address on the stack. Functions that save their return address, for another time
// or another stack, would save the replaced one: setjmp(3), getcontext(3), and what switches coroutines.
//
// From Linux 6.18 to 7.1, the kernel replaces a `nop` of five bytes by a call once a probe on it has fired. The call
// pushes a return address over the red zone, the 128 bytes below the stack pointer in which functions that call no
// other keep variables (System V ABI, AMD64 supplement, 3.2.2). Later kernels replace a `nop` of ten bytes by code that
// spares the red zone, and earlier ones replace nothing.
#pragma once

#include <vector>

#include "spec/provider.h"
#include "symbols/elf_file.h"

namespace espy::probes {

// Refuses probes in `file` that would break the program. `probes` belong to one attach point. The refused ones get
// `why_not`, and all become optional. If all are refused, and the attach point has no wildcard, removes them and
// reports an error. With --unsafe, only warns. A probe at the entry of a function breaks nothing, because the red zone
// is empty. `replaces_return` tells whether the kernel replaces the return address for a probe; null: for none.
void refuse_breaking(spec::BindRequest& request, const symbols::ElfFile& file, std::vector<spec::BoundProbe>& probes,
                     bool (*replaces_return)(const program::Probe& probe));

}  // namespace espy::probes
