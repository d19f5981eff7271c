// The variables of the current action or function.
#pragma once

#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/frame.h"
#include "lower/laundering.h"
#include "lower/memory.h"
#include "lower/scope.h"
#include "lower/scratch.h"

namespace espy::lower {

class Variables : Emitter {
 public:
  Variables(ModuleContext& module, Functions& functions, Scope& scope, Frame& frame, Scratch& scratch, Memory& memory,
            Conversions& conversions, Laundering& laundering)
      : Emitter(module, functions),
        scope_(scope),
        frame_(frame),
        scratch_(scratch),
        memory_(memory),
        conversions_(conversions),
        laundering_(laundering) {}

  Operand read(VariableId variable);
  void write(VariableId variable, Operand operand);
  // Sets the variable to zeros.
  void clear(VariableId variable);
  // Requires a shared variable, or one that is passed by reference.
  ValueId address(VariableId variable);
  // Launders all integers in slots, before a loop that may change them.
  void launder_all();

 private:
  VariableStorage& storage(VariableId variable);
  VariableStorage& placed(VariableId variable);
  VariableStorage place(VariableId variable);

  Scope& scope_;
  Frame& frame_;
  Scratch& scratch_;
  Memory& memory_;
  Conversions& conversions_;
  Laundering& laundering_;
};

}  // namespace espy::lower
