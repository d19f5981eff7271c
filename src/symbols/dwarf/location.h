// Translation of DWARF location descriptions to places (types/value_location.h). Internal to dwarf/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/arch/arch.h"
#include "symbols/dwarf/file.h"
#include "types/value_location.h"

namespace espy::symbols::dwarf {

// The address of a probe and the function that contains it.
struct Site {
  uint64_t address = 0;
  Dwarf_Die function;
  uint64_t entry = 0;  // of the function
  bool is_entry() const { return address == entry; }
};

using kernel::kInVectorRegister;

// Of a pointer that the compiler has removed, and of whose target only the value is known.
constexpr const char* kPointsToNothing = "points to a value that is nowhere in memory";

// A place, or the reason why there is none, such as "is optimised out here". Both if only some pieces have a location.
struct LocateResult {
  std::optional<types::ValueLocation> place;
  std::string why = {};
  bool is_list = false;      // from a location list, which is valid at each address, unless `is_unset`
  bool is_frame = false;     // in the stack frame, so only valid after the prologue has stored it
  bool is_indirect = false;  // of an argument: what is passed is its address
  bool is_unset = false;     // the site is the entry, and only the function itself can store it there
  size_t steps = 0;          // that were taken to find it
};

// Returns the place of a variable or parameter at `site`, from DW_AT_location or DW_AT_const_value. At the entry of a
// function, a location list that does not begin there may tell it by the values at the entry (DW_OP_entry_value).
LocateResult locate(File& file, const kernel::Arch& arch, const Dwarf_Die& variable, const Site& site);

// Returns the addresses for which a variable has a location description, which may still not be readable.
std::vector<Range> described_ranges(const Dwarf_Die& variable);

}  // namespace espy::symbols::dwarf
