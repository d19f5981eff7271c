// What several probe types share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/provider.h"

namespace espy::probes {

// "provider:part:part", as `probe` shows it.
std::string full_name(std::string_view provider, std::span<const std::string> parts);

// Reports how the attach point should look: "`interval` takes 2 parts, ...". Returns nothing, to be returned.
std::vector<spec::BoundProbe> wrong_form(spec::BindRequest& request, std::string_view form, std::string_view example);

// Reports that the kernel lacks what the attach point needs, unless `missing_probes` lets such be missing. Returns
// nothing, to be returned.
std::vector<spec::BoundProbe> not_here(spec::BindRequest& request, std::string_view id, std::string message,
                                       std::string hint = "");

// A time as the last parts say it: {"s", "5"}, {"ms", "10"}, {"us", "100"}, {"hz", "99"}, {"10ms"}, or plain
// nanoseconds.
struct Rate {
  uint64_t period_ns = 0;
  uint64_t hz = 0;  // not 0 where it was given so; `period_ns` is its inverse then
};
std::optional<Rate> parse_rate(std::span<const std::string> parts);

// pt_regs in the context, at `offset_bytes`, perhaps behind a pointer: arguments, return value, registers.
void add_registers(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types, bool is_return);

// What programs of perf events see: the registers, but no arguments, as they fire in the midst of functions.
spec::ProbeContext perf_event_context(spec::ContextRequest& request);

// What programs see that espy runs itself, once.
spec::ProbeContext once_context(spec::ContextRequest& request);

// sarg0, sarg1, ...: what is on the stack when a function begins, where arguments are that found no register.
void add_stack_arguments(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types);

// Which call of a user function it is: its stack pointer at the entry.
void add_frame(spec::ProbeContext& context, const kernel::Arch& arch, bool is_return);

// The type of `ctx`: a pointer to the kernel's struct of this name; nothing where the kernel does not tell.
types::TypeId context_pointer(spec::ContextRequest& request, std::string_view struct_name,
                              types::AddressSpace space = types::AddressSpace::kKernel);

// A type as C spells it, for listings: "unsigned long", "struct file *".
std::string c_spelling(const types::Types& types, types::TypeId type);

// "function+0x10" in two; an offset that is no number leaves the whole as the function's name.
struct FunctionOffset {
  std::string function;
  uint64_t offset = 0;
};
FunctionOffset split_offset(const std::string& text);

// A kernel function as Kernel::functions lists it, "name" or "name [module]", in two; the module of most is "vmlinux".
struct KernelFunction {
  std::string name;
  std::string module;
};
KernelFunction split_module(std::string_view listed);

// What programs of uprobe, uretprobe and usdt see, and their attaching. A `share` that starts with "multi/" is for one
// link; all of its probes are in one file.
spec::ProbeContext uprobe_context(spec::ContextRequest& request, bool is_return);
Status attach_uprobes(const spec::AttachRequest& request, bool is_return);
constexpr uint32_t kAttachUprobeSession = 57;  // BPF_TRACE_UPROBE_SESSION

// Those of the request's probes that are of this type, if there are any, else all. A session's program may serve two:
// the kernel is told of the entries, and gives their cookies to the returns, too.
std::vector<program::ProbeId> probes_of(const spec::AttachRequest& request, const spec::Provider& provider);

// The threads that a process has now.
std::vector<uint32_t> threads_of(uint32_t pid);

// CPUs that are online now.
std::vector<int32_t> online_cpus();

}  // namespace espy::probes
