// The control group of --cgroup and --container.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "spec/config.h"

namespace espy::run {

// Finds a control group of version 2: `path` is its directory, or leads there from the root of the hierarchy.
// `container` is a prefix of a container id, or the name of a systemd unit. At most one of them is not empty. Returns
// nullopt without them. If several containers match, the error names them.
Result<std::optional<spec::ControlGroup>> find_control_group(const std::string& path, const std::string& container);

}  // namespace espy::run
