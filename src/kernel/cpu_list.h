// The possible CPUs of the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espy::kernel {

// Returns the highest CPU number of a list such as "0-7" or "0,2-7", plus 1: the number of elements in a per-CPU value,
// which has unused ones for the gaps. nullopt if the text is not a CPU list.
std::optional<uint32_t> parse_cpu_count(std::string_view list);

// The same for the possible CPUs: ROOT/sys/devices/system/cpu/possible. nullopt if the file cannot be read.
std::optional<uint32_t> possible_cpu_count(const std::string& root = "");

}  // namespace espy::kernel
