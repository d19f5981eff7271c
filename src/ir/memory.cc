#include "ir/memory.h"

#include "ir/analysis.h"

namespace espy::ir {

bool is_atomic(Op op) { return op >= Op::k_atomic_add && op <= Op::k_atomic_cmpxchg; }

bool accesses_memory(Op op) {
  return op == Op::k_load || op == Op::k_store || op == Op::k_store_release || is_atomic(op);
}

bool is_call(Op op) { return op == Op::k_call || op == Op::k_kfunc || op == Op::k_call_function; }

bool writes_arguments(const Instruction& call) {
  if (effect_of(call) != Effect::write) return false;
  if (call.op != Op::k_call) return true;
  switch (call.helper) {
    case Helper::map_update_elem:
    case Helper::map_delete_elem:
    case Helper::trace_printk:
    case Helper::get_prandom_u32:
    case Helper::perf_event_output:
    case Helper::get_stackid:
    case Helper::send_signal:
    case Helper::send_signal_thread:
    case Helper::seq_printf:
    case Helper::seq_write:
    case Helper::ringbuf_output: return false;
    default: return true;
  }
}

bool writes_elsewhere(const Instruction& call) {
  if (effect_of(call) != Effect::write) return false;
  if (call.op != Op::k_call) return true;
  switch (call.helper) {
    case Helper::trace_printk:
    case Helper::get_prandom_u32:
    case Helper::get_current_comm:
    case Helper::probe_read_user:
    case Helper::probe_read_kernel:
    case Helper::probe_read_user_str:
    case Helper::probe_read_kernel_str: return false;
    default: return true;
  }
}

Memory::Memory(const Function& function)
    : locations_(function.values.size()), is_private_(function.slots.size(), true) {
  for (uint32_t i = 0; i < locations_.size(); ++i) locations_[i].id = i;
  std::vector<BlockId> order = reverse_post_order(function);
  for (BlockId block : order)
    for (ValueId id : function.blocks[block].instructions) locate(function, id);
  for (BlockId block : order)
    for (ValueId id : function.blocks[block].instructions) find_escapes(function.values[id]);
}

void Memory::locate(const Function& function, ValueId id) {
  const Instruction& instruction = function.values[id];
  Location& location = locations_[id.index];
  if (instruction.op == Op::k_slot) location = {Base::kSlot, instruction.slot.index, 0, true};
  if (instruction.op == Op::k_map_value) location = {Base::kMap, instruction.map.index, instruction.imm, true};
  if (instruction.op != Op::k_add) return;
  const Location& base = locations_[instruction.operands[0].index];
  const Instruction& step = function.values[instruction.operands[1]];
  if (step.op == Op::k_konst && step.imm == static_cast<int32_t>(step.imm)) {
    location = base;
    location.offset += step.imm;
  } else if (base.base != Base::kOther) {
    location = base;
    location.is_exact = false;
  }
}

void Memory::find_escapes(const Instruction& instruction) {
  auto escape = [&](ValueId value) {
    if (locations_[value.index].is_slot()) is_private_[locations_[value.index].id] = false;
  };
  size_t harmless = 0;  // number of leading operands that do not escape
  switch (instruction.op) {
    case Op::k_load:
    case Op::k_store:
    case Op::k_store_release:
    case Op::k_zero:
    case Op::k_add: harmless = 1; break;
    case Op::k_copy: harmless = 2; break;
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function:
    case Op::k_branch: harmless = instruction.operands.size(); break;
    default: harmless = is_atomic(instruction.op) || (instruction.op >= Op::k_eq && instruction.op <= Op::k_sle);
  }
  for (size_t i = harmless; i < instruction.operands.size(); ++i) escape(instruction.operands[i]);
  for (const Target& target : instruction.targets)
    for (ValueId argument : target.arguments) escape(argument);
}

}  // namespace espy::ir
