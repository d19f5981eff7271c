#include "lower/lower.h"

#include <algorithm>
#include <set>

#include "lower/callers.h"
#include "lower/mappings.h"
#include "lower/merge_programs.h"
#include "lower/own_time.h"
#include "lower/processes.h"
#include "lower/unit.h"

namespace espy::lower {
namespace {

using program::Hook;
using program::ProgramId;
using program::ProgramKind;

Hook hook_of(const spec::ProbeContext& context) {
  if (context.after_exit == spec::AfterExit::kAlways) return Hook::kNone;
  switch (context.kind) {
    case ProgramKind::kRawTracepoint: return context.is_at_all_system_calls ? Hook::kSystemCalls : Hook::kRawTracepoint;
    case ProgramKind::kTracingRawTracepoint: return Hook::kRawTracepoint;
    case ProgramKind::kTracepoint: return Hook::kTracepoint;
    case ProgramKind::kKprobe: return context.is_preemptible ? Hook::kUserFunction : Hook::kKernelFunction;
    case ProgramKind::kFentry:
    case ProgramKind::kFexit: return Hook::kTrampoline;
    case ProgramKind::kSyscall:
    case ProgramKind::kPerfEvent:
    case ProgramKind::kIter: break;
  }
  return Hook::kOther;
}

// Programs of user probes have the type of kprobes. Kprobes are not preempted, and skipped within one another, so the
// kernel gives their type a stack of the CPU (bpf_enable_priv_stack() in kernel/bpf/verifier.c). User probes sleep, are
// preempted, and are not skipped: there, two threads would write to one frame. All other programs with such a stack
// are skipped while their CPU runs them (bpf_prog_active, bpf_prog::active); iterators and programs that are run by
// bpf(2) have none, or are not preempted.
bool needs_thread_stack(const ModuleContext& module, const spec::ProbeContext& context) {
  return hook_of(context) == Hook::kUserFunction && module.kernel.has(kernel::Feature::kPrivateStack);
}

ProgramId add_program(ModuleContext& module, const Group& group) {
  const spec::ProbeContext& context = group.units.front()->context;
  const ProgramId id = module.program.programs.next_id();
  const bool is_session = group.kind == Group::Kind::kSession;
  module.program.programs.add(
      {.name = "espy_" + std::to_string(id.index),
       .kind = context.kind,
       .hook = hook_of(context),
       .sees_returns = is_session || context.boundary == spec::CallBoundary::kReturn,
       .keeps_thread_stack = needs_thread_stack(module, context),
       .expected_attach_type = is_session ? context.session_attach_type : context.expected_attach_type,
       .attach_btf_id = context.attach_btf_id,
       .attach_btf_module = context.attach_btf_module,
       .attach_program = context.attach_program,
       .is_last_attached_first = context.is_last_attached_first});
  return id;
}

// Not what the script runs to show its results, nor iterators, whose walk would have holes.
bool may_be_off(const Group& group) {
  const spec::ProbeContext& context = group.units.front()->context;
  return !context.fires_rarely && context.kind != ProgramKind::kIter && context.after_exit == spec::AfterExit::kStop;
}

Part part_of(const Group& group, const check::Unit& unit) {
  Part part{.shares_number = group.kind == Group::Kind::kByNumber};
  if (group.kind != Group::Kind::kSession) return part;
  part.begins_session = unit.context.boundary == spec::CallBoundary::kEntry;
  part.ends_session = !part.begins_session;
  if (unit.context.boundary == spec::CallBoundary::kReturn) part.cookie_distance = group.cookie_distance;
  // The entry counts calls that are nested too deeply for the return to be traced.
  if (unit.context.boundary == spec::CallBoundary::kEntry)
    part.max_traced_depth = group.units.back()->context.deepest_nesting;
  return part;
}

// All numbers that a group wants, sorted.
std::vector<uint64_t> numbers_of(const ModuleContext& module, const Group& group) {
  std::set<uint64_t> numbers;
  for (const check::Unit* unit : group.units)
    for (const program::ProbeId probe : unit->probes) numbers.insert(module.program.probes[probe].number);
  return {numbers.begin(), numbers.end()};
}

void add_group(ModuleContext& module, const Group& group) {
  const ProgramId id = add_program(module, group);
  if (may_be_off(group)) {
    module.program.gates.is_gated.resize(id.index + 1);
    module.program.gates.is_gated[id.index] = true;
    if (module.checked.config.has_gates && module.checked.config.measures_cost) add_caller_table(module, id);
  }
  ir::Unit out{id, {module.ir.functions.add({})}};
  std::vector<ir::Function> parts;
  const check::Unit& first = *group.units.front();
  if (group.kind == Group::Kind::kSession && group.units.size() == 1)
    parts.push_back(
        UnitLowering(module, first, out, {.begins_session = true, .max_traced_depth = first.context.deepest_nesting})
            .lower_entry_alone());
  if (group.kind == Group::Kind::kByNumber)
    parts.push_back(UnitLowering(module, first, out, part_of(group, first)).lower_dismissal(numbers_of(module, group)));
  for (const check::Unit* unit : group.units) {
    for (const program::ProbeId probe : unit->probes) module.program.probes[probe].program = id;
    if (module.checked.config.has_gates)
      for (const program::ScriptMapId map : module.maps_assigned_by(*unit))
        module.program.script_maps[map].writers.push_back(id);
    parts.push_back(UnitLowering(module, *unit, out, part_of(group, *unit)).lower());
  }
  ir::Function merged = merge(module, group, std::move(parts));
  if (module.program.own_times.switch_offset != 0) add_own_time(module.program, id, merged);
  module.ir.functions[out.functions.front()] = std::move(merged);
  module.ir.units.push_back(std::move(out));
}

}  // namespace

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, const Options& options) {
  ModuleContext module{checked, types, kernel};
  module.makes_loops_for_unroll = options.loops_for_unroll;
  module.program.probes = checked.probes;
  module.add_fixed_maps();
  if (checked.config.counts_losses || checked.config.counts_hits) module.add_hit_counters();
  module.add_script_maps();
  add_cgroup_map(module);
  add_followed_map(module);
  module.choose_ring_size();
  const std::vector<Group> groups = group_units(module, options.separate_programs);
  if (checked.config.has_gates) module.add_gates(static_cast<uint32_t>(groups.size()));
  if (checked.config.measures_cost && !kernel.has(kernel::Feature::kRunStatistics))
    module.add_own_times(static_cast<uint32_t>(groups.size()));
  for (const Group& group : groups) add_group(module, group);
  add_followers(module);
  add_first_thread_watch(module);
  add_file_key_program(module);
  module.finish();
  const bool has_merged_programs =
      std::ranges::any_of(groups, [](const Group& group) { return group.units.size() > 1; });
  return {std::move(module.ir), std::move(module.program), has_merged_programs, module.has_copies};
}

}  // namespace espy::lower
