// Visits a root and all expressions below it, parents first.
#pragma once

#include "syntax/ast.h"

namespace espy::check {

using ExprVisitor = std::function<void(syntax::ExprId)>;

void walk(const syntax::Ast& ast, syntax::ExprId root, const ExprVisitor& visit);
void walk(const syntax::Ast& ast, syntax::StmtId root, const ExprVisitor& visit);

}  // namespace espy::check
