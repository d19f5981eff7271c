// Functions of the kernel that no program should or can be attached to.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace espy::kernel {

// Returns why a function must not be probed, at its return or anywhere; nullopt if nothing is known against it.
std::optional<std::string_view> why_dangerous(std::string_view function, bool is_return);

// True for functions that do not return, which the kernel lets no fexit program on since Linux 6.16 and some earlier
// stable releases (noreturn_deny in kernel/bpf/verifier.c).
bool never_returns(std::string_view function);

// Reads the functions that the kernel does not let kprobes on. Empty where the file cannot be read.
constexpr std::string_view kKprobeBlacklist = "/sys/kernel/debug/kprobes/blacklist";
std::set<std::string, std::less<>> read_kprobe_blacklist(const std::string& path);

}  // namespace espy::kernel
