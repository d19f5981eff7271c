// Lockdown: what the kernel keeps from everybody, root included (CONFIG_SECURITY_LOCKDOWN_LSM, `lockdown=` at boot;
// distributions turn it on under secure boot). Facts: kernel_lockdown(7), security/security.c of Linux.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espy::kernel {

enum class Lockdown : uint8_t {
  kUnknown,  // nobody tells: securityfs is not mounted, or the kernel has no lockdown
  kNone,
  kIntegrity,        // programs may not change memory: no bpf_probe_write_user
  kConfidentiality,  // nor read the kernel's: no bpf_probe_read_kernel, no kprobes of perf, nothing in tracefs
};

// Where the kernel tells, below `root` ("" for the running one).
constexpr std::string_view kLockdownFile = "/sys/kernel/security/lockdown";
Lockdown read_lockdown(const std::string& root);

std::string_view name_of(Lockdown lockdown);  // "integrity"

// "lockdown (confidentiality) forbids WHAT", for messages; "" where `lockdown` is less than `least`.
std::string forbidden_by(Lockdown lockdown, Lockdown least, std::string_view what);

}  // namespace espy::kernel
