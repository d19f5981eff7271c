#include "lower/lower.h"

#include <algorithm>

#include "lower/merge_programs.h"
#include "lower/processes.h"
#include "lower/unit.h"

namespace espy::lower {
namespace {

using program::ProgramId;

ProgramId add_program(ModuleContext& module_context, const check::Unit& unit) {
  const ProgramId id = module_context.program.programs.next_id();
  module_context.program.programs.add({.name = "espy_" + std::to_string(id.index),
                                       .kind = unit.context.kind,
                                       .expected_attach_type = unit.context.expected_attach_type,
                                       .attach_btf_id = unit.context.attach_btf_id,
                                       .attach_btf_module = unit.context.attach_btf_module,
                                       .attach_program = unit.context.attach_program});
  return id;
}

void add_group(ModuleContext& module_context, const Group& group) {
  const ProgramId id = add_program(module_context, *group.units.front());
  if (group.kind == Group::Kind::kSession)
    module_context.program.programs[id].expected_attach_type = group.units.front()->context.session_attach_type;
  ir::Unit out{id, {module_context.module.functions.add({})}};
  std::vector<ir::Function> parts;
  const bool is_session = group.kind == Group::Kind::kSession;
  const uint32_t deepest_nesting = is_session ? group.units.back()->context.deepest_nesting : 0;
  if (is_session && group.units.size() == 1)
    parts.push_back(UnitLowering(module_context, *group.units.front(), out, {.deepest_nesting = deepest_nesting})
                        .lower_entry_alone());
  for (const check::Unit* unit : group.units) {
    for (const program::ProbeId probe : unit->probes) module_context.program.probes[probe].program = id;
    Part part{.shares_number = group.kind == Group::Kind::kByNumber, .knows_number = !parts.empty()};
    if (unit->context.boundary == spec::CallBoundary::kReturn) part.cookie_distance = group.cookie_distance;
    if (unit->context.boundary == spec::CallBoundary::kEntry) part.deepest_nesting = deepest_nesting;
    parts.push_back(UnitLowering(module_context, *unit, out, part).lower());
  }
  module_context.module.functions[out.functions.front()] = merge(group, std::move(parts));
  module_context.module.units.push_back(std::move(out));
}

}  // namespace

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, bool apart) {
  ModuleContext module_context{checked, types, kernel};
  module_context.program.probes = checked.probes;
  module_context.add_fixed_maps();
  if (checked.config.counts_losses) module_context.add_hit_counters();
  module_context.add_script_maps();
  add_followed_map(module_context);
  module_context.choose_ring_size();
  const std::vector<Group> groups = group_units(module_context, apart);
  for (const Group& group : groups) add_group(module_context, group);
  add_followers(module_context);
  module_context.finish();
  const bool has_merged_programs =
      std::ranges::any_of(groups, [](const Group& group) { return group.units.size() > 1; });
  return {std::move(module_context.module), std::move(module_context.program), has_merged_programs};
}

}  // namespace espy::lower
