// Hoisting of variables out of the branches of an `if`.
//
// A variable belongs to the block that first assigns it. Scripts written for bpftrace without block scopes read a
// variable after an `if` whose branches all assign it. It has a value on every path, so it is hoisted: it belongs to
// the block around the `if`.
#pragma once

#include <vector>

#include "syntax/ast.h"

namespace espy::check {

// Returns the variables that every branch of the `if` at `index` in `block` assigns and that the statements after it
// read: for each the target of its first assignment, a syntax::Variable. Empty if the statement is not an `if`.
std::vector<syntax::ExprId> variables_to_hoist(const syntax::Ast& ast, const syntax::Block& block, size_t index);

}  // namespace espy::check
