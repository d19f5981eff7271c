// Names for the values of a script, by the expressions that make them.
#pragma once

#include <string>

#include "check/checked.h"
#include "syntax/ast.h"

namespace espy::lower {

// Returns the name that the script uses for a value: "fd" for `args.fd`, "name" for `str($name)`.
std::string value_name(const syntax::Ast& ast, const check::Unit& unit, syntax::ExprId expr);

}  // namespace espy::lower
