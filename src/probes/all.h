// Every probe type.
#pragma once

#include <vector>

#include "spec/provider.h"

namespace espy::probes {

// In the order of the manual and of `espy -l`.
std::vector<const spec::Provider*> all();

}  // namespace espy::probes
