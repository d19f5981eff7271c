// Reports failures of helpers: as a record under -k, in a loss counter where losses are counted (-v, --strict).
#pragma once

#include "lower/emitter.h"
#include "lower/record_writer.h"

namespace espy::lower {

class Failures : Emitter {
 public:
  Failures(ModuleContext& module, Functions& functions, RecordWriter& writer)
      : Emitter(module, functions), writer_(writer) {}

  // See Lowering::report_failure().
  void report(Helper helper, ValueId result);
  // Under -k: emits a record that `helper` failed with `result`.
  void emit(Helper helper, ValueId result);
  // A key that delete() did not find: each time under -k; if nothing looks at what delete() returns, else the first
  // time at this place.
  void emit_absent_key(bool is_statement);

 private:
  void write(Helper helper, ValueId result);

  RecordWriter& writer_;
};

}  // namespace espy::lower
