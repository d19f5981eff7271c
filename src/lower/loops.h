// Loops.
//
// The body of a `for` over a map is a callback of bpf_for_each_map_elem, a function of its own. What it shares with the
// code around it is in the frame (frame.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lower/aggregations.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/exits.h"
#include "lower/frame.h"
#include "lower/laundering.h"
#include "lower/memory.h"
#include "lower/scope.h"
#include "lower/scratch.h"
#include "lower/variables.h"

namespace espy::lower {

class Branches;
class Expressions;
class Statements;

class Loops : Emitter {
 public:
  Loops(ModuleContext& module, Functions& functions, Scope& scope, Frame& frame, Scratch& scratch, Memory& memory,
        Conversions& conversions, Laundering& laundering, Variables& variables, Exits& exits,
        Aggregations& aggregations, Branches& branches, Expressions& expressions, Statements& statements)
      : Emitter(module, functions),
        scope_(scope),
        frame_(frame),
        scratch_(scratch),
        memory_(memory),
        conversions_(conversions),
        laundering_(laundering),
        variables_(variables),
        exits_(exits),
        aggregations_(aggregations),
        branches_(branches),
        expressions_(expressions),
        statements_(statements) {}

  void for_map(StmtId id, const syntax::ForMap& node);
  // Over the values of a recent(), oldest first.
  void for_recent(StmtId id, const syntax::ForMap& node);
  void for_range(StmtId id, const syntax::ForRange& node);
  void loop_while(const syntax::While& node);
  void unroll(const syntax::Unroll& node);
  // `break` and `continue`.
  void leave(bool is_break);

 private:
  static constexpr uint32_t kMostTurns = 8192;
  struct LoopBlocks {
    BlockId head, body, next, done, spent;
  };
  // `most_turns`: a limit for kernels that need one; a loop that reaches it is cut short.
  LoopBlocks begin(const std::string& name, uint32_t most_turns = kMostTurns);
  void end(const LoopBlocks& blocks);
  void count_up(ValueId first, ValueId end_value, const std::function<void(ValueId)>& body);
  ValueId make_pair(TypeId type, ScriptMapId map, ValueId key, ValueId value);
  void write_callback(VariableId variable, ScriptMapId map, ExprId body);
  void leave_after_callback();

  Scope& scope_;
  Frame& frame_;
  Scratch& scratch_;
  Memory& memory_;
  Conversions& conversions_;
  Laundering& laundering_;
  Variables& variables_;
  Exits& exits_;
  Aggregations& aggregations_;
  Branches& branches_;
  Expressions& expressions_;
  Statements& statements_;
};

}  // namespace espy::lower
