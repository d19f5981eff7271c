#include "check/capabilities.h"

#include <set>

#include "base/untrusted_file.h"

namespace espy::check {

std::vector<std::string_view> capabilities_of(const Checked& checked, const spec::Registry& registry) {
  std::set<std::string_view> out = {"CAP_BPF", "CAP_PERFMON"};
  for (const program::ProbeId id : checked.probes.ids()) {
    const program::Probe& probe = checked.probes[id];
    const spec::Provider* provider = registry.find_provider(probe.provider);
    if (provider != nullptr) out.insert(provider->capability);
    if (is_in_process_root(probe.target)) out.insert("CAP_SYS_PTRACE");
  }
  for (const Unit& unit : checked.units)
    for (const ExprId id : unit.exprs.ids())
      if (const spec::Builtin* builtin = unit.fact(id).builtin) out.insert(builtin->capability);
  out.erase("");
  return {out.begin(), out.end()};
}

}  // namespace espy::check
