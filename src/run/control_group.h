// The control group of --cgroup and --container.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "spec/config.h"

namespace espy::run {

// Finds a control group of version 2: `path` is that of its directory, or leads there from the root of the hierarchy;
// `container` is the beginning of a container's id, or the name of a unit of systemd. At most one of them is not empty.
// Returns nullopt without them. If several containers match, the error names them.
Result<std::optional<spec::ControlGroup>> find_control_group(const std::string& path, const std::string& container);

}  // namespace espy::run
