// recent(): a ring of the last values of each key, which all CPUs add to, or of each CPU, if the map has no keys.
// program/layout.h describes its parts, and how they are used by several CPUs at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "lower/builtin_calls.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/map_elements.h"
#include "lower/memory.h"
#include "lower/reads.h"
#include "lower/scope.h"
#include "lower/tuples.h"
#include "types/recent_layout.h"

namespace espy::lower {

class Expressions;

class Recents : Emitter {
 public:
  using Element = MapElements::Element;

  Recents(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Reads& reads,
          Conversions& conversions, MapElements& elements, BuiltinCalls& builtins, Tuples& tuples,
          Expressions& expressions)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        reads_(reads),
        conversions_(conversions),
        elements_(elements),
        builtins_(builtins),
        tuples_(tuples),
        expressions_(expressions) {}

  // Adds the value of an expression; counts a loss if the slot is still being written by another thread.
  void add(const Element& element, ExprId value);
  // The number of values that the element has.
  ValueId kept_count(const Element& element);

 private:
  // A part of the value: an operand, or an expression that is written in place.
  struct Part {
    uint32_t offset_bytes = 0;
    TypeId type;
    ExprId expr;
    Operand operand;
  };
  std::vector<Part> plan(TypeId type, ExprId value);
  Part plan_part(uint32_t offset_bytes, TypeId type, ExprId expr);
  bool is_written_in_place(const Part& part);
  void write(ValueId address, TypeId type, const std::vector<Part>& parts);
  void add_to(ValueId ring, const program::ScriptMap& map, const std::vector<Part>& parts);

  Scope& scope_;
  Memory& memory_;
  Reads& reads_;
  Conversions& conversions_;
  MapElements& elements_;
  BuiltinCalls& builtins_;
  Tuples& tuples_;
  Expressions& expressions_;
};

}  // namespace espy::lower
