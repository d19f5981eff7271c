// Variables that outlive the block that assigns them first.
//
// A variable belongs to its block. Scripts from before there was that rule read one behind an `if` whose branches all
// assign it; no path comes there without a value, so such a variable belongs to the block around the `if`.
#pragma once

#include <vector>

#include "syntax/ast.h"

namespace espy::check {

// Of the variables that every branch of the `if`, which is a statement of `block` at `index`, assigns, and of which
// what follows reads the value: where they are assigned first (a syntax::Variable each). None if the statement is
// something else.
std::vector<syntax::ExprId> variables_to_hoist(const syntax::Ast& ast, const syntax::Block& block, size_t index);

}  // namespace espy::check
