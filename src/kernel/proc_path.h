// Paths below /proc/PID.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espy::kernel {

// "/proc/PID/FILE"
inline std::string proc_path(uint32_t pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(file);
}

}  // namespace espy::kernel
