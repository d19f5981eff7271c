// Functions for several probe types.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/provider.h"

namespace espy::probes {

// "provider:part:part", as `probe` shows it.
std::string full_name(std::string_view provider, std::span<const std::string> parts);

// Reports the form of the attach point: "`interval` takes 2 parts, ...". Returns an empty list.
std::vector<spec::BoundProbe> wrong_form(spec::BindRequest& request, std::string_view form, std::string_view example);

// Reports that the kernel lacks what the attach point needs, depending on `missing_probes`. Returns an empty list.
std::vector<spec::BoundProbe> not_here(spec::BindRequest& request, std::string_view id, std::string message,
                                       std::string hint = "");

// Parses the time in the last parts: {"s", "5"}, {"ms", "10"}, {"us", "100"}, {"hz", "99"}, {"10ms"}, or nanoseconds.
struct Rate {
  uint64_t period_ns = 0;
  uint64_t hz = 0;  // not 0 if it was given as a frequency; `period_ns` is its inverse
};
std::optional<Rate> parse_rate(std::span<const std::string> parts);

// pt_regs in the context, at `offset_bytes`, perhaps behind a pointer: arguments, return value, registers.
void add_registers(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types, bool is_return);

// The context of perf events: the registers, but no arguments, since they fire anywhere in a function.
spec::ProbeContext perf_event_context(spec::ContextRequest& request);

// The context of programs that espy runs itself, once.
spec::ProbeContext once_context(spec::ContextRequest& request);

// sarg0, sarg1, ...: words on the stack at a function's entry, which hold the arguments that are not in registers.
void add_stack_arguments(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types);

// Identifies a call of a user function by the stack pointer at its entry.
void add_frame(spec::ProbeContext& context, const kernel::Arch& arch, bool is_return);

// The type of `ctx`: a pointer to the kernel's struct of this name; invalid if BTF does not have it.
types::TypeId context_pointer(spec::ContextRequest& request, std::string_view struct_name,
                              types::AddressSpace space = types::AddressSpace::kKernel);

// A type as C spells it, for listings: "unsigned long", "struct file *".
std::string c_spelling(const types::Types& types, types::TypeId type);

// Splits "function+0x10". Without a valid offset all of the text is the function's name.
struct FunctionOffset {
  std::string function;
  uint64_t offset = 0;
};
FunctionOffset split_offset(const std::string& text);

// Splits an element of Kernel::functions, "name" or "name [module]"; the default module is "vmlinux".
struct KernelFunction {
  std::string name;
  std::string module;
};
KernelFunction split_module(std::string_view listed);

// Context and attaching of uprobe, uretprobe and usdt. Probes whose `share` starts with "multi/" have one link and are
// in one file.
spec::ProbeContext uprobe_context(spec::ContextRequest& request, bool is_return);
Status attach_uprobes(const spec::AttachRequest& request, bool is_return);
constexpr uint32_t kAttachUprobeSession = 57;  // BPF_TRACE_UPROBE_SESSION

// Returns the request's probes of this type; all of them if there are none. The program of a session has probes of two
// types: it is attached to the entries, whose cookies the kernel passes at the returns, too.
std::vector<program::ProbeId> probes_of(const spec::AttachRequest& request, const spec::Provider& provider);

// The current threads of a process.
std::vector<uint32_t> threads_of(uint32_t pid);

// The CPUs that are online.
std::vector<int32_t> online_cpus();

}  // namespace espy::probes
