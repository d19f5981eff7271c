#include "lower/callers.h"

#include <bit>

#include "lower/module_context.h"
#include "lower/processes.h"

namespace espy::lower {

namespace {

using ir::BlockId;
using ir::Condition;
using ir::Op;
using ir::ValueId;
using program::Gates;
using program::Hook;
using program::ProgramId;

constexpr uint32_t kMostRawTracepoints = 4;  // with tables: those of the others would take much memory
constexpr uint32_t kCpuBytes = Gates::kCallers * Gates::kCallerBytes;

// Programs that are turned off together share a table.
bool shares_table(Hook hook) {
  return hook == Hook::kUserFunction || hook == Hook::kKernelFunction || hook == Hook::kSystemCalls;
}

}  // namespace

void add_caller_table(ModuleContext& module, ProgramId id) {
  Gates& gates = module.program.gates;
  const Hook hook = module.program.programs[id].hook;
  if (!gates.has_gate(id) || (!shares_table(hook) && hook != Hook::kRawTracepoint)) return;
  gates.caller_tables.resize(id.index + 1);
  uint32_t same = 0;
  for (uint32_t other = 0; other < id.index; ++other) {
    if (module.program.programs[ProgramId{other}].hook != hook || gates.caller_tables[other] == 0) continue;
    if (shares_table(hook)) {
      gates.caller_tables[id.index] = gates.caller_tables[other];
      return;
    }
    ++same;
  }
  if (same >= kMostRawTracepoints) return;
  gates.caller_tables[id.index] = module.add_global(kCpuBytes * module.cpu_slots(), kCacheLineBytes);
}

void count_caller(ir::Builder& ir, const ModuleContext& module, ProgramId id, ValueId cpu, bool is_preemptible) {
  const uint32_t table = module.program.gates.caller_table(id);
  if (table == 0) return;
  const auto& space = module.checked.config.pid_namespace;
  const ValueId process = space ? own_id(ir, module.types, module.kernel, *space, true) : current_process(ir);
  const ValueId slot = ir.binary(Op::k_and, cpu, module.cpu_slots() - 1);
  const ValueId of_cpu = ir.binary(Op::k_add, ir.map_value(module.program.globals, table),
                                   ir.binary(Op::k_shl, slot, std::countr_zero(kCpuBytes)));
  const ValueId place = ir.binary(Op::k_and, process, Gates::kCallers - 1);
  const ValueId element =
      ir.binary(Op::k_add, of_cpu, ir.binary(Op::k_shl, place, std::countr_zero(Gates::kCallerBytes)));
  const BlockId other = ir.add_block("other_caller");
  const BlockId first = ir.add_block("first_of_caller");
  const BlockId known = ir.add_block("known_caller");
  const BlockId done = ir.add_block("caller_is_counted");
  const ValueId owner = ir.load(8, element);
  ir.branch(Condition::eq, owner, process, known, other);
  ir.enter(other);
  ir.branch(Condition::eq, owner, 0, first, done);
  ir.enter(first);
  ir.store(8, element, process);
  ir.jump(known);
  ir.enter(known);
  if (is_preemptible)
    ir.atomic_add(8, ir.binary(Op::k_add, element, 8), ir.constant(1));
  else
    ir.store(8, element, ir.binary(Op::k_add, ir.load(8, element, 8), 1), 8);
  ir.jump(done);
  ir.enter(done);
}

}  // namespace espy::lower
