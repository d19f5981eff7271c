#include "kernel/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/files.h"

namespace espy::kernel {

namespace {

constexpr FeatureRow kRows[] = {
    {Feature::kBpfV3, "bpf_v3", "program", "has 32-bit BPF instructions", "5.1"},
    {Feature::kBpfV4, "bpf_v4", "program", "has signed division, sign-extending loads and long jumps in BPF", "6.6"},
    {Feature::kRingbuf, "ringbuf", "map", "has BPF ring buffers", "5.8"},
    {Feature::kLargeArrayValues, "large_array_values", "map", "has arrays with values longer than 4 MiB", "5.11"},
    {Feature::kLongKeys, "long_keys", "map", "has hashes with keys longer than 512 bytes", "5.11"},
    {Feature::kAtomicFetch, "atomic_fetch", "program", "has atomic operations that return the old value", "5.12"},
    {Feature::kRawTracepointCookie, "raw_tracepoint_cookie", "link", "passes cookies to raw tracepoints", "6.10"},
    {Feature::kPerfLinkCookie, "perf_link_cookie", "helper", "passes cookies through perf event links", "5.15"},
    {Feature::kTpBtf, "tp_btf", "types", "attaches to tracepoints with typed arguments", "5.5"},
    {Feature::kIntPointerArguments, "int_pointer_arguments", "program",
     "loads arguments of fentry and fexit that point to integers", "5.17"},
    {Feature::kFentry, "fentry", "link", "attaches to functions by trampoline (fentry, fexit)", "5.5"},
    {Feature::kStructArguments, "struct_arguments", "types", "attaches by trampoline to functions that take structs",
     "6.1"},
    {Feature::kStackArguments, "stack_arguments", "types",
     "attaches by trampoline to functions with more arguments than registers", "6.6"},
    {Feature::kRecursionGuard, "recursion_guard", "program", "skips fentry programs that call their own function",
     "5.12"},
    {Feature::kKprobe, "kprobe", "file", "has kprobes", "4.1"},
    {Feature::kKprobeMulti, "kprobe_multi", "link", "attaches many kprobes in one call", "5.18"},
    {Feature::kKprobeSession, "kprobe_session", "link", "runs one program at entry and return of a kernel function",
     "6.10"},
    {Feature::kFprobeGraph, "fprobe_graph", "types", "traces returns of kernel functions by the function graph tracer",
     "6.14"},
    {Feature::kUprobeMulti, "uprobe_multi", "link", "attaches many uprobes in one call", "6.6"},
    {Feature::kUprobeSession, "uprobe_session", "link", "runs one program at entry and return of a user function",
     "6.13"},
    {Feature::kUprobeSleep, "uprobe_sleep", "program", "lets programs of user probes wait for pages of memory", "6.6"},
    {Feature::kUprobeKeepsStack, "uprobe_keeps_stack", "process",
     "leaves a program's stack alone at probes on five-byte nops, as kernels before 6.18 do", "7.2"},
    {Feature::kUprobePrefixedNop, "uprobe_prefixed_nop", "process", "has user probes on ten-byte nops", "7.2"},
    {Feature::kRdonlyCastTyped, "rdonly_cast_typed", "program", "reads kernel structs by plain loads", "6.2"},
    {Feature::kRdonlyCastVoid, "rdonly_cast_void", "program", "reads any kernel memory by plain loads", "6.18"},
    {Feature::kStoreRelease, "store_release", "program", "stores with release order", "6.15"},
    {Feature::kMayGoto, "may_goto", "program", "allows loops without a provable bound", "6.9"},
    {Feature::kOpenCodedIterators, "open_coded_iterators", "types", "has number iterators in BPF", "6.4"},
    {Feature::kMapLookupPercpu, "map_lookup_percpu", "helper", "looks up other CPUs' values in BPF", "5.19"},
    {Feature::kForEachMapElem, "for_each_map_elem", "helper", "walks maps in BPF", "5.13"},
    {Feature::kHashAllocation, "hash_allocation", "program", "adds to hashes in any program without preallocation",
     "6.1"},
    {Feature::kBpfLoop, "bpf_loop", "helper", "has bounded loops by helper", "5.17"},
    {Feature::kGetCurrentTaskBtf, "get_current_task_btf", "helper", "gives the current task as a typed pointer",
     "5.11"},
    {Feature::kGetAttachCookie, "get_attach_cookie", "helper", "a program learns which of its attachments ran it",
     "5.15"},
    {Feature::kTaskStorage, "task_storage", "helper", "keeps values with a task", "6.2"},
    {Feature::kGetFuncIp, "get_func_ip", "helper", "a program learns the address of the probed function", "5.15"},
    {Feature::kStringKfuncs, "string_kfuncs", "types", "has string functions in BPF", "6.17"},
    {Feature::kSendSignal, "send_signal", "helper", "sends signals from BPF", "5.3"},
    {Feature::kProbeReadKernel, "probe_read_kernel", "helper", "reads kernel memory from BPF", "5.5"},
    {Feature::kProbeWriteUser, "probe_write_user", "helper", "writes user memory from BPF", "4.8", true},
    {Feature::kPerfEventHardware, "perf_event_hardware", "event", "counts hardware events", "2.6.31", true},
    {Feature::kRunStatistics, "run_statistics", "program", "counts the runs of programs, and their time", "5.8", true},
    {Feature::kFirstFrameOnce, "first_frame_once", "program", "does not double the first frame of stacks", "6.1"},
    {Feature::kPrivateStack, "private_stack", "program", "keeps large frames of programs in memory of the CPU", "6.13"},
    {Feature::kTailCallStack, "tail_call_stack", "program",
     "keeps the frames of programs with tail calls on the thread's stack", "4.16"},
};

static_assert(std::size(kRows) == static_cast<size_t>(Feature::kCount), "a row for each feature");
static_assert(std::ranges::is_sorted(kRows, {}, &FeatureRow::feature), "rows in the order of the enum");

}  // namespace

std::span<const FeatureRow> feature_rows() { return kRows; }

std::optional<Feature> find_feature(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &FeatureRow::name);
  if (row == std::end(kRows)) return std::nullopt;
  return row->feature;
}

std::string missing_feature(Feature feature, std::string_view what) {
  constexpr Feature kMattersOfBuild[] = {Feature::kKprobe, Feature::kProbeReadKernel, Feature::kProbeWriteUser,
                                         Feature::kPerfEventHardware};
  const FeatureRow& row = kRows[static_cast<size_t>(feature)];
  const bool has_release = std::ranges::find(kMattersOfBuild, feature) == std::end(kMattersOfBuild);
  const std::string release = has_release ? fmt::format(" (Linux {})", row.since) : "";
  return fmt::format("this kernel lacks `{}`{}, which {} needs", row.name, release, what);
}

// "none integrity [confidentiality]": the state is the word in brackets.
Lockdown read_lockdown(const std::string& root) {
  const auto text = read_file(root + std::string(kLockdownFile));
  if (!text) return Lockdown::kUnknown;
  for (const Lockdown state : {Lockdown::kNone, Lockdown::kIntegrity, Lockdown::kConfidentiality})
    if (text->find(fmt::format("[{}]", name_of(state))) != std::string::npos) return state;
  return Lockdown::kUnknown;
}

std::string_view name_of(Lockdown lockdown) {
  switch (lockdown) {
    case Lockdown::kUnknown: return "unknown";
    case Lockdown::kNone: return "none";
    case Lockdown::kIntegrity: return "integrity";
    case Lockdown::kConfidentiality: return "confidentiality";
  }
  return "unknown";
}

std::string forbidden_by(Lockdown lockdown, Lockdown least, std::string_view what) {
  if (lockdown < least) return "";
  return fmt::format("the kernel's lockdown ({}) forbids {}", name_of(lockdown), what);
}

}  // namespace espy::kernel
