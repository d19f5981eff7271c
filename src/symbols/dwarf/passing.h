// What debug information tells of how a function is called, for a CPU's calling convention (calling_convention.h).
// Internal to dwarf/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "kernel/arch/calling_convention.h"
#include "symbols/dwarf/file.h"
#include "symbols/dwarf/location.h"
#include "symbols/dwarf/types.h"

namespace espy::symbols::dwarf {

// What decides whether a compiler may change how a function is called.
struct Linkage {
  bool is_global = false;  // other files may call it
  bool is_optimised = true;
};
using OptimisedUnits = std::map<const void*, bool>;  // those that were looked at
Linkage linkage_of(File& file, const Dwarf_Die& function, uint64_t entry, OptimisedUnits& known);

// Returns why arguments and results are not where the calling convention of the CPU has them, as a predicate: "is not
// known, as ..."; "" if they are there.
std::string_view why_no_convention(const Dwarf_Die& function, const Linkage& linkage);
// The same for a result of the type.
std::string_view why_no_result(const Dwarf_Die& function, const types::Type& result, const Linkage& linkage);
// Whether a function that leaves its result in memory might not return the address: LLVM drops `sret` from functions
// that no other file calls, and does not tell.
bool may_lose_address(const Dwarf_Die& function, const Linkage& linkage);
constexpr std::string_view kNoAddress = "is in memory at an address that an optimised function need not return";

struct Passed {
  kernel::PassedValue value;  // its type may be another one that is passed in the same way
  // Why nothing is known of its place, nor of those of arguments behind it: "is of a type that ..."; "" if it is known.
  std::string_view unknown = {};
};
// Returns a value of the type, void for nullopt. `found`: the location of the argument, if it is one.
Passed passed_value(TypeReader& reader, const std::optional<Dwarf_Die>& type, const LocateResult* found);

}  // namespace espy::symbols::dwarf
