// Blocks and choices between them: `{ }`, `if`, `a ? b : c`.
#pragma once

#include <optional>

#include "check/expressions.h"
#include "check/statements.h"
#include "check/variables.h"

namespace espy::check {

class Blocks {
 public:
  Blocks(Facts& facts, Reporter& reporter, Expressions& expressions, Variables& variables, Statements& statements)
      : facts_(facts), reporter_(reporter), expressions_(expressions), variables_(variables), statements_(statements) {}

  TypeId block(ExprId id, const syntax::Block& node);
  TypeId branch(ExprId id, const syntax::If& node);
  TypeId ternary(ExprId id, const syntax::Ternary& node);

 private:
  bool leaves(StmtId id);
  bool leaves(ExprId id);
  std::optional<bool> known_branch(ExprId id, ExprId condition);
  TypeId common_type(ExprId id, ExprId a, ExprId b);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  Variables& variables_;
  Statements& statements_;
};

}  // namespace espy::check
