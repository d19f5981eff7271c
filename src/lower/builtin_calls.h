// Calls of builtins. The only part that passes the Lowering interface to them.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "lower/emitter.h"
#include "lower/memory.h"
#include "lower/scope.h"

namespace espy::lower {

class BuiltinCalls : Emitter {
 public:
  BuiltinCalls(ModuleContext& module, Functions& functions, Lowering& lowering, Scope& scope, Memory& memory)
      : Emitter(module, functions), lowering_(lowering), scope_(scope), memory_(memory) {}

  Operand call(ExprId expr, const spec::Builtin& builtin, std::span<const ExprId> arguments);
  // Folds the call's argument into the aggregation at `address`.
  void update(ExprId call, const spec::Builtin& builtin, ValueId address, bool is_atomic);

  // True for `comm`, `str(p)` and the like: a string or buffer that its builtin can write to any destination.
  bool writes_bytes(ExprId expr) const;
  // Requires writes_bytes(). Returns the length.
  ValueId write_bytes(ExprId expr, ValueId destination, uint32_t capacity_bytes);
  // See Lowering for these.
  void allow_truncation(ExprId call) { may_truncate_.insert(call.index); }
  void count_truncated(ExprId call, ValueId size_bytes, Condition condition, uint32_t limit);

 private:
  Operand call_into_memory(const spec::CallSite& site, const spec::Builtin& builtin);

  Lowering& lowering_;
  Scope& scope_;
  Memory& memory_;
  std::set<uint32_t> may_truncate_;  // calls
};

}  // namespace espy::lower
