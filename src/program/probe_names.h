// Names of the probe that fired: `probe`, `func` and `probetype` are the index of a probe, displayed as one of its
// names. Probes with the same name use the index of the first of them, so that equal names are equal map keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"
#include "types/type.h"

namespace espy::program {

inline bool is_probe_name(types::Kind kind) {
  return kind == types::Kind::kProbeName || kind == types::Kind::kFunctionName || kind == types::Kind::kProbeType;
}

// Returns the name of a probe. `kind`: kProbeName, kFunctionName or kProbeType.
inline const std::string& probe_name_text(types::Kind kind, const Probe& probe) {
  if (kind == types::Kind::kProbeName) return probe.name;
  return kind == types::Kind::kFunctionName ? probe.function : probe.provider;
}

// Returns the index of the first probe with the name; probes.size() if there is none. A function whose demangled name
// is shown is also found by the symbol that its probe names.
uint32_t first_named(types::Kind kind, const std::string& name, const Table<ProbeId, Probe>& probes);

// Returns, for each probe, the index of the first one with the same name.
std::vector<uint32_t> first_of_each_name(types::Kind kind, const Table<ProbeId, Probe>& probes);

}  // namespace espy::program
