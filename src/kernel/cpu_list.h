// Lists of CPUs as sysfs has them: "0-7", "0,2-7".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espy::kernel {

// Returns the highest CPU number of a list plus 1: the number of elements in a per-CPU value, which has unused ones for
// the gaps. Returns nullopt if the text is not a CPU list.
std::optional<uint32_t> parse_cpu_count(std::string_view list);

// The same for the possible CPUs: ROOT/sys/devices/system/cpu/possible. nullopt if the file cannot be read.
std::optional<uint32_t> possible_cpu_count(const std::string& root = "");

// Returns the CPUs of this machine that are online, or CPU 0 if that cannot be read.
std::vector<uint32_t> online_cpus();

}  // namespace espy::kernel
