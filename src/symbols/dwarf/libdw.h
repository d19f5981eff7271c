// Handles of libdw, whose memory may run out. Internal to dwarf/.
#pragma once

#include <elfutils/libdw.h>

namespace espy::symbols::dwarf {

// Opens the debug information of an ELF file; null if it has none. Where libdw runs out of memory, its functions throw
// std::bad_alloc instead of ending the process; then the handle can only be closed.
Dwarf* begin_dwarf(Elf* elf);
// The same for a handle that libdw has opened by itself.
void throw_if_out_of_memory(Dwarf* dwarf);

}  // namespace espy::symbols::dwarf
