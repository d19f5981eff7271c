// import "x.bt": the definitions, macros, functions and actions of other files.
#pragma once

#include "check/check.h"
#include "syntax/ast.h"

namespace espy::check {

// Reads all files that `ast` imports, directly or indirectly, each once, and puts their contents in front of `ast`'s
// own, so that a file's `begin` runs after those of its imports. Paths are relative to the importing file. A directory
// stands for the scripts and headers in it, without subdirectories. Errors go to request.diagnostics.
void read_imports(syntax::Ast& ast, source::SourceId script, CheckRequest& request);

}  // namespace espy::check
