// Blocks and choices between them: `{ }`, `if`, `a ? b : c`.
//
// What a known condition leaves out is not checked, so that it may be of another program, kernel or type. But it can
// give a type, as it does where the condition is not known: a number to the value of both sides, and what it assigns to
// maps and variables to which the rest assigns nothing (analyzer.cc).
#pragma once

#include <functional>
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

  // From here on, branches that are left out are checked as well, except those of `if comptime`.
  void check_all() { checks_all_ = true; }
  // Whether such a branch was left out, or would have been.
  bool has_left_out() const { return has_left_out_; }

 private:
  bool leaves(StmtId id);
  bool leaves(ExprId id);
  std::optional<bool> known_branch(ExprId id, ExprId condition);
  void leave_out(ExprId branch);
  void with_left_out(ExprId branch, const std::function<void(TypeId)>& look);
  TypeId common_type(ExprId id, ExprId a, ExprId b);

  Facts& facts_;
  Reporter& reporter_;
  Expressions& expressions_;
  Variables& variables_;
  Statements& statements_;
  bool checks_all_ = false;
  bool has_left_out_ = false;
};

}  // namespace espy::check
