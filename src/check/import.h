// import "x.bt": the definitions, macros, functions and actions of other files.
#pragma once

#include "check/check.h"
#include "syntax/ast.h"

namespace espy::check {

// Reads what `ast` imports, and what that imports, each file once; puts it in front of what `ast` holds itself, so that
// `begin` of a file runs after those of its imports. Paths are relative to the file that imports. A directory stands
// for its scripts and headers, not for those of directories in it.
void read_imports(syntax::Ast& ast, source::SourceId script, CheckRequest& request);

}  // namespace espy::check
