// Macros: every call is replaced by the macro's body, with names of its own.
#pragma once

#include "source/diagnostic.h"
#include "syntax/ast.h"

namespace espy::check {

// Rewrites calls of macros in `ast`. A call becomes a Block: the body with its own variables renamed, parameters
// replaced by what was given. Text from a body has spans that say through which call it came. Recursion is an error.
void expand_macros(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics);

}  // namespace espy::check
