// Expressions and assignments that concern the script's maps.
#pragma once

#include <vector>

#include "lower/aggregations.h"
#include "lower/builtin_calls.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/failures.h"
#include "lower/map_elements.h"
#include "lower/memory.h"
#include "lower/recents.h"
#include "lower/scope.h"
#include "lower/tuples.h"
#include "lower/variables.h"

namespace espy::lower {

class Maps : Emitter {
 public:
  using Element = MapElements::Element;

  Maps(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Conversions& conversions,
       Failures& failures, Variables& variables, MapElements& elements, Aggregations& aggregations,
       BuiltinCalls& builtins, Tuples& tuples, Recents& recents, Expressions& expressions)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        conversions_(conversions),
        failures_(failures),
        variables_(variables),
        elements_(elements),
        aggregations_(aggregations),
        builtins_(builtins),
        tuples_(tuples),
        recents_(recents),
        expressions_(expressions) {}

  // See Lowering for these. With `parts`, the key is a tuple of them.
  Element element(ExprId map_expr);
  Element element(ScriptMapId map, ExprId key);
  Element element(ScriptMapId map, const std::vector<ExprId>& parts);
  ValueId find_into(const Element& element, ExprId variable);

  // The element's value, merged if it is an aggregation; zeros if the key is absent.
  Operand read(const Element& element);
  // Assigns a value, or updates the aggregation if `value` is a call such as count().
  void assign(ExprId target, ExprId value);

 private:
  bool is_of_thread(ScriptMapId map) const;
  bool may_wait_for(ExprId argument) const;
  Operand copied(Operand value);
  void note_key_names(ScriptMapId map, const std::vector<ExprId>& indices);
  void note_sampling(ScriptMapId map);

  Scope& scope_;
  Memory& memory_;
  Conversions& conversions_;
  Failures& failures_;
  Variables& variables_;
  MapElements& elements_;
  Aggregations& aggregations_;
  BuiltinCalls& builtins_;
  Tuples& tuples_;
  Recents& recents_;
  Expressions& expressions_;
};

}  // namespace espy::lower
