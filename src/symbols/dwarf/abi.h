// How functions take arguments and give results on x86-64 (System V ABI, 3.2.3), for when the function has not yet put
// them where debug information says. Rust goes its own way with small and large structs; it promises nothing, and so
// this is what rustc does now. Inside this folder only.
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
  bool is_rust = false;  // two numbers take a register each, however small
};

// Whether a function leaves the register, by its number in DWARF, as it was or puts it back.
bool is_preserved_by_calls(uint64_t number);

// Where a program's thread-local variables begin, counted from the thread pointer; nothing for other CPUs.
std::optional<int64_t> thread_local_start(uint16_t machine, const GElf_Phdr& segment);

// Where each of the arguments is when the function is entered; nothing for one in a vector register.
std::vector<std::optional<types::ValueLocation>> argument_locations(const types::Types& types, const kernel::Arch& arch,
                                                                    const std::vector<PassedValue>& arguments,
                                                                    const PassedValue& result);
// Where the result is when the function has returned.
std::optional<types::ValueLocation> result_location(const types::Types& types, const kernel::Arch& arch,
                                                    const PassedValue& result);

}  // namespace espy::symbols::dwarf
