#include "program/probe_names.h"

#include <string_view>
#include <unordered_map>

namespace espy::program {

uint32_t first_named(types::Kind kind, const std::string& name, const Table<ProbeId, Probe>& probes) {
  uint32_t i = 0;
  while (i < probes.size() && probe_name_text(kind, probes[ProbeId{i}]) != name) ++i;
  if (i < probes.size() || kind != types::Kind::kFunctionName) return i;
  for (const ProbeId id : probes.ids())
    if (!name.empty() && probes[id].name.ends_with(":" + name)) return first_named(kind, probes[id].function, probes);
  return i;
}

std::vector<uint32_t> first_of_each_name(types::Kind kind, const Table<ProbeId, Probe>& probes) {
  std::unordered_map<std::string_view, uint32_t> first;
  std::vector<uint32_t> out;
  for (const ProbeId id : probes.ids())
    out.push_back(first.emplace(probe_name_text(kind, probes[id]), id.index).first->second);
  return out;
}

}  // namespace espy::program
