// probes: the probe types, as plugins (spec/provider.h).
//
// A file has the row of a type, or of several alike, with the functions that bind, describe, attach and list its
// probes. To add one, add a file with its row, and its line in all_probes.cc.
#pragma once

#include <vector>

#include "spec/provider.h"

namespace espy::probes {

// In the order of the manual and of `espy -l`.
std::vector<const spec::Provider*> all();

}  // namespace espy::probes
