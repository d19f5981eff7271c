// Features that kernels differ in. Code asks `kernel.has(feature)` and never for a version number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace espy::kernel {

enum class Feature : uint8_t {
  kBpfV3,  // BPF_JMP32, ALU32 (5.1)
  kBpfV4,  // sdiv, movsx, ldsx, gotol, unconditional bswap (6.6)
  kRingbuf,
  kLargeArrayValues,     // values of arrays may be longer than 4 MiB (the kernel's KMALLOC_MAX_SIZE)
  kLongKeys,             // keys of hashes may be longer than 512 bytes (5.11)
  kAtomicFetch,          // atomic operations that return the old value (5.12); add alone is older
  kRawTracepointCookie,  // cookie in raw_tracepoint links (6.10)
  kPerfLinkCookie,       // bpf_get_attach_cookie through perf links (5.15)
  kTpBtf,
  kIntPointerArguments,  // fentry and fexit programs load arguments that point to integers (5.17)
  kFentry,
  kStructArguments,  // fentry and fexit on functions that take structs by value (6.1)
  kStackArguments,   // and on those with more arguments than the registers of calls hold (6.6; arm64: 6.16)
  kRecursionGuard,   // a program that calls the function it is attached to by fentry is not run again (5.12)
  kKprobe,
  kKprobeMulti,
  kKprobeSession,
  kFprobeGraph,  // fprobes, and so kprobe_multi, on the function graph tracer (6.14)
  kUprobeMulti,
  kUprobeSession,
  kUprobeSleep,         // programs of user probes may read pages that are not in memory (6.6)
  kUprobeKeepsStack,    // user probes on Arch::callable_nop leave the program's stack as it is (not from 6.18 to 7.1)
  kUprobePrefixedNop,   // user probes on Arch::prefixed_nop fire (7.2)
  kRdonlyCastTyped,     // bpf_rdonly_cast(ptr, btf id): plain loads from kernel structures
  kRdonlyCastVoid,      // bpf_rdonly_cast(ptr, 0): plain loads from anywhere in kernel memory (6.18)
  kStoreRelease,        // stores with release order (6.15); for CPUs that reorder stores
  kMayGoto,             // loops without a provable bound (6.9)
  kOpenCodedIterators,  // bpf_iter_num_new (6.4)
  kMapLookupPercpu,     // bpf_map_lookup_percpu_elem (5.19)
  kForEachMapElem,
  kHashAllocation,  // programs of all types may use hashes that are not preallocated, with keys over 512 bytes (6.1)
  kBpfLoop,
  kGetCurrentTaskBtf,
  kGetAttachCookie,
  kTaskStorage,
  kGetFuncIp,
  kStringKfuncs,
  kSendSignal,
  kProbeReadKernel,  // not under lockdown
  kProbeWriteUser,
  kPerfEventHardware,
  kRunStatistics,   // the kernel counts runs of programs and their time, on request (5.8)
  kFirstFrameOnce,  // a stack that begins in the kernel's own code, not at registers, has its first frame once (6.1)
  kPrivateStack,    // frames of 64 bytes and more are in memory of the CPU, and not on the thread's stack (6.13)
  kTailCallStack,   // ... but on the thread's stack if the program has a tail call
  kCount,
};

// The longest key of a hash without kLongKeys (htab_map_alloc_check in kernel/bpf/hashtab.c).
constexpr uint32_t kShortKeyBytes = 512;

struct FeatureRow {
  Feature feature;
  std::string_view name;     // "uprobe_multi": for --info, --no-feature and recorded kernels
  std::string_view how;      // how it is tried: "program" (loading one), "types" (BTF has it), ...
  std::string_view meaning;  // "attaches many uprobes in one call"
  std::string_view since;    // kernel release, for users
  bool needs_admin = false;  // found only with CAP_SYS_ADMIN
};

std::span<const FeatureRow> feature_rows();
std::optional<Feature> find_feature(std::string_view name);
// "this kernel lacks `task_storage` (Linux 5.11), which WHAT needs"; the release is skipped where a kernel of any
// release may be built or locked so that it lacks the feature.
std::string missing_feature(Feature feature, std::string_view what);

// ---- Lockdown: operations that the kernel denies to all users, root included (CONFIG_SECURITY_LOCKDOWN_LSM,
// `lockdown=` at boot; distributions enable it under secure boot). See kernel_lockdown(7), and security/security.c of
// Linux.

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
