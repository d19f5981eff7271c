// Records for user space.
//
// Scalars are evaluated before the record is reserved, so that no code of the script runs between the reservation and
// the completion; only strings are read straight into the record. If a read may sleep, it also comes before the
// reservation, since a reserved record delays all that follow it.
//
// A string or buffer that may be long is in the record's tail, after the fixed part, and takes only the space that it
// needs there: the record is reserved for the largest, and the rest given back (RecordWriter::finish).
#pragma once

#include <cstdint>
#include <vector>

#include "lower/builtin_calls.h"
#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/memory.h"
#include "lower/reads.h"
#include "lower/record_writer.h"
#include "lower/scope.h"

namespace espy::lower {

class Expressions;

class Events : Emitter {
 public:
  Events(ModuleContext& module, Functions& functions, Scope& scope, Memory& memory, Reads& reads,
         Conversions& conversions, RecordWriter& writer, BuiltinCalls& builtins, Expressions& expressions)
      : Emitter(module, functions),
        scope_(scope),
        memory_(memory),
        reads_(reads),
        conversions_(conversions),
        writer_(writer),
        builtins_(builtins),
        expressions_(expressions) {}

  // See Lowering::emit_event(). `schema` has no fields yet. `buffer` may be null.
  void emit(program::EventSchema schema, const std::vector<EventArgument>& arguments, const SpanBuffer* buffer);

 private:
  struct PlannedField {
    program::EventField field;
    ExprId expr;      // valid: a builtin writes its bytes into the record
    Operand operand;  // else
  };
  PlannedField plan(const EventArgument& argument);
  void evaluate(const EventArgument& argument, PlannedField& planned);
  Operand write_early(ExprId expr);
  void write_field(const PlannedField& planned, ValueId destination);
  ValueId write_tail(const PlannedField& planned, ValueId destination);
  ValueId bounded(ValueId value, uint32_t limit);

  Scope& scope_;
  Memory& memory_;
  Reads& reads_;
  Conversions& conversions_;
  RecordWriter& writer_;
  BuiltinCalls& builtins_;
  Expressions& expressions_;
};

}  // namespace espy::lower
