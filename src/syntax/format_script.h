// The formatter: a tree as text. Parsing the output of `format` yields the same tree; formatting it again yields the
// same text.
#pragma once

#include <string>

#include "syntax/ast.h"

namespace espy::syntax {

// Returns the script in espy's style; comments of the source stay in place.
std::string format(const Ast& ast, const source::Sources& sources, source::SourceId source);

// The same for a tree that was built (syntax/build.h), without sources. The text is to be read: it escapes bytes of
// names that no script can have, so parsing it does not always yield the same tree.
std::string format(const Ast& ast);

// Returns an attach point, with its parts in quotes where they need them.
std::string format(const AttachPoint& point);

// Returns an expression on one line.
std::string format(const Ast& ast, ExprId expr);

// Returns the tree with one indented node per line, the output of --dump=ast. `with_places` adds line and column to
// each node.
std::string dump(const Ast& ast, const source::Sources& sources, bool with_places = false);

}  // namespace espy::syntax
