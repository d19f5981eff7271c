// Which variables must be in the frame: those that are used in the body of a `for` over a map, which is a function of
// its own, as well as outside of it, and those whose address is taken.
#pragma once

#include <cstdint>
#include <set>

#include "check/checked.h"

namespace espy::lower {

// Returns the indices of the unit's shared variables.
std::set<uint32_t> find_shared_variables(const syntax::Ast& ast, const check::Unit& unit);

}  // namespace espy::lower
