// Places at which the kernel's own probe would break the program, or never fire.
//
// A return probe replaces the return address on the stack. Functions that save their return address, for another time
// or another stack, would save the replaced one: setjmp(3), getcontext(3), and what switches coroutines. Others read
// it: dlsym(3) and dlopen(3) to find the library that calls them, and unwinders to begin there.
//
// A file that is linked with text relocations has code that the loader changes, but the kernel keeps, and runs, the
// instruction as it is in the file.
//
// From Linux 6.18 to 7.1, the kernel replaces a `nop` of five bytes by a call once a probe on it has fired. The call
// pushes a return address over the red zone. These are the 128 bytes below the stack pointer in which leaf functions
// keep variables (System V ABI, AMD64 supplement, 3.2.2). Later kernels replace a `nop` of ten bytes by code that
// spares the red zone, and earlier ones replace nothing. A process that the program forks has the call, but not the
// code that it leads to, and dies there.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/provider.h"
#include "symbols/elf_file.h"

namespace espy::probes {

// Refuses probes in `file` that would break the program. `probes` belong to one attach point. The refused ones get
// `why_not`, and all become optional. If all are refused, and the attach point has no wildcard, removes them and
// reports an error. With --unsafe, only warns. At the entry of a function the red zone is empty, and move_behind_nops()
// moves the probe. `replaces_return`: whether the kernel replaces the return address for a probe; null: for none.
void refuse_breaking(spec::BindRequest& request, const symbols::ElfFile& file, std::vector<spec::BoundProbe>& probes,
                     bool (*replaces_return)(const program::Probe& probe));

// Returns the offset of the first instruction at or after an entry that the kernel does not replace by a call. Such
// instructions are nops, so registers and stack are there as at the entry.
uint64_t behind_nops(kernel::Kernel& kernel, const symbols::ElfFile& file, uint64_t file_offset);
// Moves probes of entries to the instruction after their nops. Call refuse_breaking() first: it refuses the nops of
// other places.
void move_behind_nops(const spec::BindRequest& request, const symbols::ElfFile& file,
                      std::vector<spec::BoundProbe>& probes);

}  // namespace espy::probes
