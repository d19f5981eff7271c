// Lists the families of builtins. To add a family, add a file and its line in all_builtins.cc; to add a builtin, add a
// row to the file of its family.
#pragma once

#include <vector>

#include "spec/builtin.h"

namespace espy::builtins {

// In the order of the manual.
std::vector<spec::BuiltinFamily> all();

}  // namespace espy::builtins
