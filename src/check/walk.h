// Visits a root and all expressions below it, parents first.
#pragma once

#include <functional>

#include "syntax/ast.h"

namespace espy::check {

using ExprVisitor = std::function<void(syntax::ExprId)>;

using TypeNameVisitor = std::function<void(syntax::TypeNameId)>;  // of casts, declarations and sizeof

void walk(const syntax::Ast& ast, syntax::ExprId root, const ExprVisitor& visit,
          const TypeNameVisitor& visit_type = {});
void walk(const syntax::Ast& ast, syntax::StmtId root, const ExprVisitor& visit);

}  // namespace espy::check
