// Every family of builtins.
#pragma once

#include <vector>

#include "spec/builtin.h"

namespace espy::builtins {

// In the order of the manual.
std::vector<spec::BuiltinFamily> all();

}  // namespace espy::builtins
