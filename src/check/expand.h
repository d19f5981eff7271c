// Hygienic macros: each call is replaced by the macro's body.
#pragma once

#include "source/diagnostic.h"
#include "syntax/ast.h"

namespace espy::check {

// Replaces calls of macros in `ast`. A call becomes a Block: the body with its variables renamed and its parameters
// replaced by the arguments. Spans of a body's nodes record the call that they came from. Recursion is an error.
void expand_macros(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics);

}  // namespace espy::check
