// The unit with which systemd runs a tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espy::cli {

// Whether a tool of this name can be a unit: systemd takes ASCII letters, digits and `:-_.` (systemd.unit(5)), 255
// bytes with the suffix. A command takes a name that begins with `-` for an option. A unit's name needs no quotes.
bool is_unit_name(std::string_view tool);

struct UnitRequest {
  std::string tool;                            // its name, for which is_unit_name() holds
  std::string description;                     // one line
  std::vector<std::string_view> capabilities;  // that it needs, CAP_BPF and CAP_PERFMON among them
  bool has_budget = false;                     // the tool keeps one; otherwise the unit gives it 2%
};

// Returns the text of NAME.service.
std::string systemd_unit(const UnitRequest& request);

}  // namespace espy::cli
