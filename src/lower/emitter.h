// Base of the parts of UnitLowering: writes instructions at the current position of the current function.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lower/functions.h"
#include "lower/lowering.h"
#include "lower/module_context.h"

namespace espy::lower {

using check::StmtId;
using check::VariableId;
using ir::BlockId;
using ir::Condition;
using ir::FunctionId;
using ir::Helper;
using ir::Op;
using program::ScriptMapId;
using types::Kind;

class Emitter {
 protected:
  Emitter(ModuleContext& module, Functions& functions) : module_(module), functions_(functions) {}
  ~Emitter() = default;
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  ir::Builder& ir() { return functions_.ir(); }
  types::Types& types() const { return module_.types; }
  kernel::Kernel& kernel() const { return module_.kernel; }
  const spec::Config& config() const { return module_.checked.config; }
  const syntax::Ast& ast() const { return module_.checked.ast; }
  bool is_scalar(TypeId type) const { return !types::is_by_reference(types()[type]); }

  ValueId offset(ValueId address, int64_t offset_bytes);
  // The low `size_bytes` of `value`, extended to 64 bits.
  ValueId extend(ValueId value, uint8_t size_bytes, bool is_signed);
  ValueId cpu();

  // Slots of 8 bytes that mem2reg promotes to values.
  ir::SlotId new_slot(std::string name) { return ir().add_variable(std::move(name)); }
  ValueId read_slot(ir::SlotId slot) { return ir().load(8, ir().slot(slot)); }
  void write_slot(ir::SlotId slot, ValueId value) { ir().store(8, ir().slot(slot), value); }

  // See control.h.
  ValueId select(Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
                 const std::function<ValueId()>& if_false);
  void when(Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
            const std::function<void()>& otherwise = nullptr);
  // See Lowering.
  void count_loss(program::LossKind kind, std::string_view what);
  // The same, reported with the place that is being lowered.
  void count_loss_here(program::LossKind kind, std::string_view what);

  ModuleContext& module_;
  Functions& functions_;
};

}  // namespace espy::lower
