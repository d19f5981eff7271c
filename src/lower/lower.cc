#include "lower/lower.h"

#include <algorithm>

#include "lower/join.h"
#include "lower/processes.h"
#include "lower/unit.h"

namespace espy::lower {
namespace {

using program::ProgramId;

ProgramId add_program(Shared& shared, const check::Unit& unit) {
  const ProgramId id = shared.program.programs.next_id();
  shared.program.programs.add({.name = "espy_" + std::to_string(id.index),
                               .kind = unit.context.kind,
                               .expected_attach_type = unit.context.expected_attach_type,
                               .attach_btf_id = unit.context.attach_btf_id,
                               .attach_btf_module = unit.context.attach_btf_module,
                               .attach_program = unit.context.attach_program});
  return id;
}

void add_group(Shared& shared, const Group& group) {
  const ProgramId id = add_program(shared, *group.units.front());
  if (group.kind == Group::Kind::kSession)
    shared.program.programs[id].expected_attach_type = group.units.front()->context.session_attach_type;
  ir::Unit out{id, {shared.module.functions.add({})}};
  std::vector<ir::Function> parts;
  const bool is_session = group.kind == Group::Kind::kSession;
  const uint32_t deepest_nesting = is_session ? group.units.back()->context.deepest_nesting : 0;
  if (is_session && group.units.size() == 1)
    parts.push_back(
        UnitLowering(shared, *group.units.front(), out, {.deepest_nesting = deepest_nesting}).lower_entry_alone());
  for (const check::Unit* unit : group.units) {
    for (const program::ProbeId probe : unit->probes) shared.program.probes[probe].program = id;
    Part part{.shares_number = group.kind == Group::Kind::kByNumber, .knows_number = !parts.empty()};
    if (unit->context.edge == spec::CallEdge::kReturn) part.cookie_distance = group.cookie_distance;
    if (unit->context.edge == spec::CallEdge::kEntry) part.deepest_nesting = deepest_nesting;
    parts.push_back(UnitLowering(shared, *unit, out, part).lower());
  }
  shared.module.functions[out.functions.front()] = join(group, std::move(parts));
  shared.module.units.push_back(std::move(out));
}

}  // namespace

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, bool apart) {
  Shared shared{checked, types, kernel};
  shared.program.probes = checked.probes;
  shared.add_fixed_maps();
  if (checked.config.keeps_ledger) shared.add_hit_counters();
  shared.add_script_maps();
  add_followed_map(shared);
  shared.choose_ring_size();
  const std::vector<Group> groups = group_units(shared, apart);
  for (const Group& group : groups) add_group(shared, group);
  add_followers(shared);
  shared.finish();
  const bool is_joined = std::ranges::any_of(groups, [](const Group& group) { return group.units.size() > 1; });
  return {std::move(shared.module), std::move(shared.program), is_joined};
}

}  // namespace espy::lower
