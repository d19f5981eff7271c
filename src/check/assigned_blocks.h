// Aggregations as values of blocks: `@ = { ...; avg($x) }`.
#pragma once

#include "spec/registry.h"
#include "syntax/ast.h"

namespace espy::check {

// Moves each assignment of a block that ends with an aggregation into the block: `{ ...; @ = avg($x); }`. A call of a
// macro is such a block, too.
void assign_inside_blocks(syntax::Ast& ast, const spec::Registry& registry);

}  // namespace espy::check
