// espy's own library: macros of the language that are there without an import.
#pragma once

#include "source/diagnostic.h"
#include "syntax/ast.h"

namespace espy::check {

// Adds the macros of the library that the script names and does not define itself. A script that names none pays for a
// look at its names.
void add_library(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics);

}  // namespace espy::check
