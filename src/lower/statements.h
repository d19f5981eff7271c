// Statements.
#pragma once

#include <vector>

#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/exits.h"
#include "lower/frame.h"
#include "lower/memory.h"
#include "lower/scope.h"
#include "lower/variables.h"

namespace espy::lower {

class Access;
class Branches;
class Expressions;
class Loops;
class Maps;
class Operators;

class Statements : Emitter {
 public:
  Statements(ModuleContext& module, Functions& functions, Scope& scope, Frame& frame, Memory& memory,
             Conversions& conversions, Variables& variables, Exits& exits, Maps& maps, Operators& operators,
             Access& access, Branches& branches, Expressions& expressions, Loops& loops)
      : Emitter(module, functions),
        scope_(scope),
        frame_(frame),
        memory_(memory),
        conversions_(conversions),
        variables_(variables),
        exits_(exits),
        maps_(maps),
        operators_(operators),
        access_(access),
        branches_(branches),
        expressions_(expressions),
        loops_(loops) {}

  void lower(const std::vector<StmtId>& statements);
  // An expression whose value is not used.
  void discard(ExprId expr);

 private:
  void lower(StmtId statement);
  void discard_if(ExprId expr, const syntax::If& node);
  void let(StmtId id, const syntax::Let& node);
  void assign(const syntax::Assign& node);
  void return_from(const syntax::Return& node);
  void store_result(ExprId value);

  Scope& scope_;
  Frame& frame_;
  Memory& memory_;
  Conversions& conversions_;
  Variables& variables_;
  Exits& exits_;
  Maps& maps_;
  Operators& operators_;
  Access& access_;
  Branches& branches_;
  Expressions& expressions_;
  Loops& loops_;
};

}  // namespace espy::lower
