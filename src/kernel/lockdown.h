// Lockdown: operations that the kernel denies to all users, root included (CONFIG_SECURITY_LOCKDOWN_LSM, `lockdown=` at
// boot; distributions enable it under secure boot). See kernel_lockdown(7), and security/security.c of Linux.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace espy::kernel {

enum class Lockdown : uint8_t {
  kUnknown,  // securityfs is not mounted, or the kernel has no lockdown
  kNone,
  kIntegrity,        // BPF programs cannot write memory: no bpf_probe_write_user
  kConfidentiality,  // nor read kernel memory: no bpf_probe_read_kernel, no kprobes of perf, nothing in tracefs
};

// The state of the kernel below `root` ("" for the running one).
constexpr std::string_view kLockdownFile = "/sys/kernel/security/lockdown";
Lockdown read_lockdown(const std::string& root);

std::string_view name_of(Lockdown lockdown);  // "integrity"

// "lockdown (confidentiality) forbids WHAT", for messages; "" if `lockdown` is less than `least`.
std::string forbidden_by(Lockdown lockdown, Lockdown least, std::string_view what);

}  // namespace espy::kernel
