// The listing of uprobe and uretprobe.
#pragma once

#include <vector>

#include "spec/provider.h"

namespace espy::probes {

// Return the functions that a pattern such as `uprobe:BINARY:FUNCTION` matches; `uprobe:BINARY@FILE:LINE`, and a single
// function where locations are shown, also lists statements. Without a binary, the program of the traced process.
std::vector<spec::ListedProbe> list_uprobes(spec::ListRequest& request);
std::vector<spec::ListedProbe> list_uretprobes(spec::ListRequest& request);

}  // namespace espy::probes
