// Hygienic macros: each call is replaced by the macro's body.
#pragma once

#include "source/diagnostic.h"
#include "spec/registry.h"
#include "syntax/ast.h"

namespace espy::check {

// Replaces calls of macros in `ast`. A call becomes a Block: the body with its variables renamed and its parameters
// replaced by the arguments. Spans of a body's nodes record the call that they came from. Recursion is an error. A call
// with a number of arguments that no macro of its name takes is one of the builtin of that name, if there is one.
void expand_macros(syntax::Ast& ast, const spec::Registry& registry, source::Sources& sources,
                   source::Diagnostics& diagnostics);

// Returns true if a call can have a number of arguments that both macros take.
bool take_the_same(const syntax::Macro& a, const syntax::Macro& b);

}  // namespace espy::check
