// Interface of a CPU's calling convention: where functions of C, C++ and Rust find their arguments and leave their
// result, for addresses at which debug information does not say.
#pragma once

#include <optional>
#include <vector>

#include "types/type.h"
#include "types/value_location.h"

namespace espy::kernel {

struct Arch;

struct PassedValue {
  types::TypeId type;  // complete
  bool is_by_reference = false;
  bool is_rust = false;  // rustc passes a pair of numbers in two registers, however small; its ABI is unspecified
};

// Locations at the function's entry, one for each argument; nullopt for an argument in a vector register.
using ArgumentLocations = std::vector<std::optional<types::ValueLocation>> (*)(
    const types::Types& types, const Arch& arch, const std::vector<PassedValue>& arguments, const PassedValue& result);

// The location right after the return; nullopt if it is a vector register.
using ResultLocation = std::optional<types::ValueLocation> (*)(const types::Types& types, const Arch& arch,
                                                               const PassedValue& result);

}  // namespace espy::kernel
