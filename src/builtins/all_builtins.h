// builtins: the variables, functions and aggregations of the language, as plugins (spec/builtin.h).
//
// A file is a family: a table of rows with the functions that check, lower and handle them. To add a family, add a file
// and its line in all_builtins.cc; to add a builtin, add a row to the file of its family.
#pragma once

#include <vector>

#include "spec/builtin.h"

namespace espy::builtins {

// In the order of the manual.
std::vector<spec::BuiltinFamily> all();

}  // namespace espy::builtins
