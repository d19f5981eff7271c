#include "symbols/dwarf/libdw.h"

#include <new>

namespace espy::symbols::dwarf {

namespace {

// Must not return (elfutils/libdw.h, dwarf_new_oom_handler; its type has the attribute, which clang does not find in
// [[noreturn]]). libdw is C, but compiled with unwind tables.
__attribute__((noreturn)) void on_out_of_memory() { throw std::bad_alloc(); }

}  // namespace

Dwarf* begin_dwarf(Elf* elf) {
  Dwarf* out = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  if (out != nullptr) throw_if_out_of_memory(out);
  return out;
}

void throw_if_out_of_memory(Dwarf* dwarf) { dwarf_new_oom_handler(dwarf, on_out_of_memory); }

}  // namespace espy::symbols::dwarf
