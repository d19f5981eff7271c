// Functions of the kernel that no program should be attached to: machines hung where one was.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace espy::kernel {

// Returns why a function must not be probed, at its return or anywhere; nullopt if nothing is known against it.
std::optional<std::string_view> why_dangerous(std::string_view function, bool is_return);

// Reads the functions that the kernel does not let kprobes on. Empty where the file cannot be read.
constexpr std::string_view kForbiddenFunctions = "/sys/kernel/debug/kprobes/blacklist";
std::set<std::string, std::less<>> read_kprobe_blacklist(const std::string& path);

}  // namespace espy::kernel
