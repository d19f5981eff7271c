// The unit with which systemd runs a tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espy::cli {

struct UnitRequest {
  std::string tool;                            // its name
  std::string description;                     // one line
  std::vector<std::string_view> capabilities;  // that it needs, CAP_BPF and CAP_PERFMON among them
  bool has_budget = false;                     // the tool keeps one; else the unit gives it one of 2 %
};

// Returns the text of NAME.service.
std::string systemd_unit(const UnitRequest& request);

}  // namespace espy::cli
