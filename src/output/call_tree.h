// Merged stacks as a tree of text: callers above what they call, the largest branch first.
#pragma once

#include <cstddef>
#include <string>

#include "output/profile_formats.h"

namespace espy::output {

// Returns the lines. `columns`: of a line; 0: any number. One line sums up branches below half a percent, and branches
// beyond 20 of a frame, with their number and value. Names need be printable.
std::string call_tree_text(const CallTree& all, size_t columns);

}  // namespace espy::output
