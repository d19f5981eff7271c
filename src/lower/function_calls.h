// Calls of the script's functions, which are inlined: there is no calling convention and no limit on arguments, and the
// optimizer sees through them.
#pragma once

#include <vector>

#include "lower/emitter.h"
#include "lower/frame.h"
#include "lower/memory.h"
#include "lower/scope.h"
#include "lower/variables.h"

namespace espy::lower {

class Expressions;
class Statements;

class FunctionCalls : Emitter {
 public:
  FunctionCalls(ModuleContext& module, Functions& functions, Scope& scope, Frame& frame, Memory& memory,
                Variables& variables, Expressions& expressions, Statements& statements)
      : Emitter(module, functions),
        scope_(scope),
        frame_(frame),
        memory_(memory),
        variables_(variables),
        expressions_(expressions),
        statements_(statements) {}

  Operand call(ExprId expr, const syntax::Call& node);

 private:
  const check::Unit* find_callee(ExprId call) const;
  Operand inline_body(const check::Unit& callee, const std::vector<Operand>& arguments);
  void init_result(Activation& activation);
  Operand result(const Activation& activation);

  Scope& scope_;
  Frame& frame_;
  Memory& memory_;
  Variables& variables_;
  Expressions& expressions_;
  Statements& statements_;
  size_t depth_ = 0;
};

}  // namespace espy::lower
