// The way back: a tree as text. Parsing what `format` prints gives the same tree, and formatting that gives the same
// text.
#pragma once

#include <string>

#include "syntax/ast.h"

namespace espy::syntax {

// The whole script, laid out in espy's style, comments of the source kept where they stood.
std::string format(const Ast& ast, const source::Sources& sources, source::SourceId source);

// One expression on one line.
std::string format(const Ast& ast, ExprId expr);

// The tree, one node a line, indented: what --dump=ast shows and the parser's goldens hold. `with_places` adds line and
// column to each node.
std::string dump(const Ast& ast, const source::Sources& sources, bool with_places = false);

}  // namespace espy::syntax
