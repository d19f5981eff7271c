// Handles of libdw, whose memory may run out. Internal to dwarf/.
#pragma once

#include <elfutils/libdw.h>

namespace espy::symbols::dwarf {

// Opens the debug information of an ELF file; null if it has none. Where libdw runs out of memory, its functions throw
// std::bad_alloc from then on, instead of ending the process.
Dwarf* begin_dwarf(Elf* elf);
// The same for a handle that libdw has opened by itself.
void throw_if_out_of_memory(Dwarf* dwarf);

// Whether libdw has run out of memory. It may have kept locks and unfinished tables, and must not be called any more.
bool is_out_of_memory();

// Closes a handle; without effect after libdw has run out of memory.
void end_dwarf(Dwarf* dwarf);

}  // namespace espy::symbols::dwarf
