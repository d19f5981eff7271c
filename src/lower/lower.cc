#include "lower/lower.h"

#include <algorithm>
#include <set>

#include "lower/merge_programs.h"
#include "lower/processes.h"
#include "lower/unit.h"

namespace espy::lower {
namespace {

using program::ProgramId;

ProgramId add_program(ModuleContext& module, const Group& group) {
  const spec::ProbeContext& context = group.units.front()->context;
  const ProgramId id = module.program.programs.next_id();
  const bool is_session = group.kind == Group::Kind::kSession;
  module.program.programs.add(
      {.name = "espy_" + std::to_string(id.index),
       .kind = context.kind,
       .expected_attach_type = is_session ? context.session_attach_type : context.expected_attach_type,
       .attach_btf_id = context.attach_btf_id,
       .attach_btf_module = context.attach_btf_module,
       .attach_program = context.attach_program,
       .is_last_attached_first = context.is_last_attached_first});
  return id;
}

Part part_of(const Group& group, const check::Unit& unit) {
  Part part{.shares_number = group.kind == Group::Kind::kByNumber};
  if (group.kind != Group::Kind::kSession) return part;
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
  ir::Unit out{id, {module.ir.functions.add({})}};
  std::vector<ir::Function> parts;
  const check::Unit& first = *group.units.front();
  if (group.kind == Group::Kind::kSession && group.units.size() == 1)
    parts.push_back(
        UnitLowering(module, first, out, {.max_traced_depth = first.context.deepest_nesting}).lower_entry_alone());
  if (group.kind == Group::Kind::kByNumber)
    parts.push_back(UnitLowering(module, first, out, part_of(group, first)).lower_dismissal(numbers_of(module, group)));
  for (const check::Unit* unit : group.units) {
    for (const program::ProbeId probe : unit->probes) module.program.probes[probe].program = id;
    parts.push_back(UnitLowering(module, *unit, out, part_of(group, *unit)).lower());
  }
  module.ir.functions[out.functions.front()] = merge(module, group, std::move(parts));
  module.ir.units.push_back(std::move(out));
}

}  // namespace

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, bool separate_programs) {
  ModuleContext module{checked, types, kernel};
  module.program.probes = checked.probes;
  module.add_fixed_maps();
  if (checked.config.counts_losses) module.add_hit_counters();
  module.add_script_maps();
  add_cgroup_map(module);
  add_followed_map(module);
  module.choose_ring_size();
  const std::vector<Group> groups = group_units(module, separate_programs);
  for (const Group& group : groups) add_group(module, group);
  add_followers(module);
  module.finish();
  const bool has_merged_programs =
      std::ranges::any_of(groups, [](const Group& group) { return group.units.size() > 1; });
  return {std::move(module.ir), std::move(module.program), has_merged_programs};
}

}  // namespace espy::lower
