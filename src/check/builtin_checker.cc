#include "check/builtin_checker.h"

#include <algorithm>

namespace espy::check {

std::vector<std::string> BuiltinChecker::probe_types() const {
  std::vector<std::string> out;
  for (const ProbeId id : unit().probes) {
    const std::string& provider = checked_.probes[id].provider;
    if (std::ranges::find(out, provider) == out.end()) out.push_back(provider);
  }
  return out;
}

void BuiltinChecker::note_option(ScriptOption option) {
  const bool is_known = std::ranges::find(checked_.options, option.name, &ScriptOption::name) != checked_.options.end();
  if (round_.is_final && !is_known) checked_.options.push_back(std::move(option));
}

}  // namespace espy::check
