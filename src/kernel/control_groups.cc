#include "kernel/control_groups.h"

#include "base/fd.h"
#include "base/mounts.h"
#include "base/strings.h"

namespace espy::kernel {

std::string control_group_mount() {
  const auto mounts = read_file("/proc/self/mountinfo");
  if (!mounts) return "";
  for (const std::string_view line : split(*mounts, '\n'))
    if (const auto mount = parse_mount(line); mount && mount->type == "cgroup2") return std::string(mount->place);
  return "";
}

}  // namespace espy::kernel
