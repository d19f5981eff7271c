// Where control groups are.
#pragma once

#include <string>

namespace espy::kernel {

// Returns the directory where the hierarchy of version 2 is mounted, by /proc/self/mountinfo (proc_pid_mountinfo(5));
// "" if it is not.
std::string control_group_mount();

}  // namespace espy::kernel
