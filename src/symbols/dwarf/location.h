// DWARF's location expressions as places (types/value_location.h). Inside this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/arch/arch.h"
#include "symbols/dwarf/file.h"
#include "types/value_location.h"

namespace espy::symbols::dwarf {

// Where a probe fires, and in which function.
struct Site {
  uint64_t address = 0;
  Dwarf_Die function;
  uint64_t entry = 0;  // of the function
  bool is_entry() const { return address == entry; }
};

constexpr const char* kInVectorRegister = "is in a vector register, which probes cannot read";

// A place, or why there is none: "is optimised out here", "is in a vector register". Both where parts are missing.
struct Found {
  std::optional<types::ValueLocation> place;
  std::string why = {};
  bool is_list = false;   // from a location list, which says of each address what is true there
  bool is_frame = false;  // in memory of the function's own, which it has to fill in first
};

// The place of a variable or parameter at `site`, by DW_AT_location or DW_AT_const_value.
Found locate(File& file, const kernel::Arch& arch, const Dwarf_Die& variable, const Site& site);

// Addresses at which the variable's location list or expression says something, which may still be of no use.
std::vector<Range> described_ranges(const Dwarf_Die& variable);

}  // namespace espy::symbols::dwarf
