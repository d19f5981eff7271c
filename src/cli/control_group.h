// Control groups and systemd units, as options and tools name them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/config.h"

namespace espy::cli {

// ---- The control group of --cgroup and --container.

// Finds a control group of version 2: `path` is that of its directory, or leads there from the root of the hierarchy;
// `container` is the beginning of a container's id, or the name of a unit of systemd. At most one of them is not empty.
// Returns nullopt without them. If several containers match, the error names them.
Result<std::optional<spec::ControlGroup>> find_control_group(const std::string& path, const std::string& container);

// ---- The unit with which systemd runs a tool.

// Whether a tool of this name can be a unit: systemd takes ASCII letters, digits and `:-_.` (systemd.unit(5)), 255
// bytes with the suffix. A command takes a name that begins with `-` for an option. A unit's name needs no quotes.
bool is_unit_name(std::string_view tool);

struct UnitRequest {
  std::string tool;                            // its name, for which is_unit_name() holds
  std::string description;                     // one line
  std::vector<std::string_view> capabilities;  // that it needs, CAP_BPF and CAP_PERFMON among them
  bool has_budget = false;                     // the tool keeps one; else the unit gives it one of 2 %
};

// Returns the text of NAME.service.
std::string systemd_unit(const UnitRequest& request);

}  // namespace espy::cli
