// What a C++ class tells of how its values are passed. Internal to dwarf/.
#pragma once

#include "symbols/dwarf/file.h"

namespace espy::symbols::dwarf {

// Whether the class itself, apart from its members and bases, is not trivial for the purposes of calls (Itanium C++
// ABI, 1.1): its destructor or a copy or move constructor is user-provided, all of these constructors are deleted, or
// it has virtual functions or bases.
bool is_non_trivial_by_itself(const Dwarf_Die& plain_class);

}  // namespace espy::symbols::dwarf
