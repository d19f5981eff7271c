// Interface of a CPU's calling convention: where functions of C, C++ and Rust find their arguments and leave their
// result, for addresses at which debug information does not say.
#pragma once

#include <optional>
#include <string_view>
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

constexpr const char* kInVectorRegister = "is in a vector register, which probes cannot read";

struct ResultPlace {
  std::optional<types::ValueLocation> place;
  std::string_view why = {};  // if there is none: kInVectorRegister, or another predicate of the value
};

// The location right after the return.
using ResultLocation = ResultPlace (*)(const types::Types& types, const Arch& arch, const PassedValue& result);

}  // namespace espy::kernel
