// #define: macros of C that the script names.
#pragma once

#include <map>
#include <string>

#include "check/check.h"
#include "syntax/ast.h"

namespace espy::check {

// Macros without parameters, by name: the expression that each stands for; invalid if it stands for itself.
using Defines = std::map<std::string, syntax::ExprId, std::less<>>;

// Parses the bodies of the #defines that the script names, as expressions of the same tree. One with parameters becomes
// a macro of the language, to be expanded with the others. The tree grows, so facts must not exist yet.
Defines parse_defines(syntax::Ast& ast, CheckRequest& request);

}  // namespace espy::check
