#include "kernel/control_groups.h"

#include <algorithm>

#include "base/fd.h"
#include "base/strings.h"

namespace espy::kernel {

std::string control_group_mount() {
  const auto mounts = read_file("/proc/self/mountinfo");
  if (!mounts) return "";
  for (const std::string_view line : split(*mounts, '\n')) {
    const auto fields = split(line, ' ');
    const auto end = std::ranges::find(fields, std::string_view("-"));
    if (fields.size() > 4 && end != fields.end() && end + 1 != fields.end() && end[1] == "cgroup2")
      return std::string(fields[4]);
  }
  return "";
}

}  // namespace espy::kernel
