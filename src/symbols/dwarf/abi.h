// The calling convention of C and C++ on x86-64 (System V ABI, 3.2.3) and of Rust, for the locations of arguments
// before the prologue and of results. Rust passes small and large structs differently; that is not documented, so this
// follows what rustc does. Internal to dwarf/.
#pragma once

#include <gelf.h>

#include <optional>
#include <vector>

#include "kernel/arch/arch.h"
#include "types/type.h"
#include "types/value_location.h"

namespace espy::symbols::dwarf {

struct PassedValue {
  types::TypeId type;  // complete
  bool is_by_reference = false;
  bool is_rust = false;  // a pair of scalars takes two registers, whatever their size
};

// Whether a register, given by its DWARF number, is callee-saved.
bool is_callee_saved(uint64_t number);

// Returns the offset of the thread-local variables of an executable from the thread pointer; nullopt for other CPUs.
std::optional<int64_t> thread_local_start(uint16_t machine, const GElf_Phdr& segment);

// Returns the location of each argument at the entry of a function; nullopt for one in a vector register.
std::vector<std::optional<types::ValueLocation>> argument_locations(const types::Types& types, const kernel::Arch& arch,
                                                                    const std::vector<PassedValue>& arguments,
                                                                    const PassedValue& result);
// Returns the location of the result after the return; nullopt if it is in a vector register.
std::optional<types::ValueLocation> result_location(const types::Types& types, const kernel::Arch& arch,
                                                    const PassedValue& result);

}  // namespace espy::symbols::dwarf
