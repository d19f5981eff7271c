#include "check/program_types.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "check/type_rules.h"

namespace espy::check {

// The provider to ask for the types of the program that a probe is in; null for other probes.
const spec::Provider* ProgramTypes::asked(const program::Probe& probe) const {
  const spec::Provider* provider = registry_.find_provider(probe.provider);
  return provider != nullptr && provider->find_type != nullptr ? provider : nullptr;
}

// One probe for each program.
const std::vector<const program::Probe*>& ProgramTypes::probes_in_programs(Scope scope) {
  const auto [entry, is_new] = probes_.try_emplace({facts_.unit_index(), scope});
  std::vector<const program::Probe*>& out = entry->second;
  if (!is_new) return out;
  std::set<std::string_view> seen;
  const auto add = [&](ProbeId id) {
    const program::Probe& probe = checked_.probes[id];
    if (asked(probe) != nullptr && seen.insert(probe.target).second) out.push_back(&probe);
  };
  for (const ProbeId id : facts_.unit().probes) add(id);
  if (scope == Scope::kOwn || !out.empty()) return out;
  for (const ProbeId id : checked_.probes.ids()) add(id);
  return out;
}

std::optional<ProgramTypes::Found> ProgramTypes::search(Scope scope, Category category, const std::string& name) {
  std::optional<Found> out;
  std::string first;
  Explanation& explanation = explanations_[{facts_.unit_index(), name}];
  for (const program::Probe* probe : probes_in_programs(scope)) {
    spec::ProgramTypeRequest request{category, name, *probe, facts_.types(), checked_.symbols};
    const spec::ProgramType found = asked(*probe)->find_type(request);
    if (!found.problem.empty()) explanation.hint = found.problem + ": define it in the script";
    if (!found.candidates.empty()) {
      explanation = {fmt::format("`{}` could be `{}`", name, join(found.candidates, "` or `")), "write the full name"};
      return std::nullopt;
    }
    if (!found.type) continue;
    if (!out) {
      out = {found.type, found.value};
      first = probe->target;
    } else if (found.value != out->value || !is_alike(facts_.types(), out->type, found.type)) {
      explanation = {fmt::format("`{}` is different in {} and {}", name, first, probe->target),
                     "use it in a probe of one of them, or define it in the script"};
      return std::nullopt;
    }
  }
  return out;
}

std::optional<ProgramTypes::Found> ProgramTypes::find(Scope scope, Category category, const std::string& name) {
  if (probes_in_programs(scope).empty()) return std::nullopt;
  const auto [entry, is_new] = found_.try_emplace({facts_.unit_index(), scope, category, name});
  if (is_new) entry->second = search(scope, category, name);
  return entry->second;
}

TypeId ProgramTypes::find_type(Scope scope, Category category, const std::string& name) {
  const auto found = find(scope, category, name);
  return found ? found->type : TypeId{};
}

void ProgramTypes::define(TypeId declared) {
  const types::Type type = facts_.type_of(declared);
  const TypeId found = type.name.empty() ? TypeId{} : find_type(Scope::kOwn, Category::kStruct, type.name);
  if (!found || found == declared) return;
  kernel_.complete(facts_.types(), found);
  const types::Type known = facts_.type_of(found);
  if (known.complete) facts_.types().define_struct(declared, known.members, known.size_bytes, known.align_bytes);
}

std::optional<ProgramTypes::Explanation> ProgramTypes::explain(const std::string& name) const {
  const auto found = explanations_.find({facts_.unit_index(), name});
  return found == explanations_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace espy::check
