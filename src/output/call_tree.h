// Merged stacks as a tree of text: callers above what they call, the largest branch first.
#pragma once

#include <cstddef>
#include <string>

#include "output/profile_formats.h"

namespace espy::output {

// Returns the lines. `columns`: of a line; 0: any number. Branches below half a percent of the whole, and those beyond
// 20 of a frame, are one line that tells how many they are and what they have. Names need be printable.
std::string call_tree_text(const CallTree& all, size_t columns);

}  // namespace espy::output
