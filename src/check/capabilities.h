// Which capabilities a script needs, by the rows of its probes and builtins (docs/privileges.md).
#pragma once

#include <string_view>
#include <vector>

#include "check/checked.h"
#include "spec/registry.h"

namespace espy::check {

// Returns their names, sorted, CAP_BPF and CAP_PERFMON among them. Names of user stacks and of addresses, which tracing
// works without, count as needed.
std::vector<std::string_view> capabilities_of(const Checked& checked, const spec::Registry& registry);

}  // namespace espy::check
