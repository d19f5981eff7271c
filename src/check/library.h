// espy's library: macros that scripts can call without an import.
#pragma once

#include "source/diagnostic.h"
#include "syntax/ast.h"

namespace espy::check {

// Adds the macros of the library that the script names and does not define for the same number of arguments. The text
// of others is not parsed.
void add_library(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics);

}  // namespace espy::check
