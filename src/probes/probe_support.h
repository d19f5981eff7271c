// Helpers that several probe types share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/machine.h"
#include "spec/provider.h"

namespace espy::probes {

// Returns "provider:part:part", the name that `probe` prints.
std::string full_name(std::string_view provider, std::span<const std::string> parts);

// Reports an attach point of the wrong form: the expected form and an example. Returns no probes, for the caller to
// return.
std::vector<spec::BoundProbe> report_wrong_form(spec::BindRequest& request, std::string_view form,
                                                std::string_view example);

// Reports that the kernel lacks what the attach point needs. Returns no probes, for the caller to return.
std::vector<spec::BoundProbe> report_unavailable(spec::BindRequest& request, std::string_view id, std::string message,
                                                 std::string hint = "");

// Reports that the snapshot of the kernel lacks the fact that decides whether the attach point works. `what` is a
// clause that begins with "whether".
constexpr std::string_view kNotKnown = "not-known";
void report_not_known(source::Diagnostics& diagnostics, const spec::BindRequest& request, std::string_view what);

// Returns why a function of the kernel is not probed without --unsafe; nullopt if it is.
std::optional<std::string> why_refused(const spec::BindRequest& request, std::string_view function, bool is_return,
                                       bool is_kprobe);
// Reports it for a function that the attach point names.
void report_refused(spec::BindRequest& request, std::string_view function, const std::string& why);

// A period, parsed from the last parts of an attach point: {"s", "5"}, {"ms", "10"}, {"us", "100"}, {"hz", "99"},
// {"10ms"}, or a number of nanoseconds. The function parse_rate() returns nullopt if the parts have another form.
struct Rate {
  uint64_t period_ns = 0;
  uint64_t hz = 0;  // not 0: the period was given as this frequency
};
std::optional<Rate> parse_rate(std::span<const std::string> parts);

// A number of events or units: as parse_int(), with `_` between digits ("1_000"), or in scientific notation ("1e6").
// nullopt if it is not positive.
std::optional<uint64_t> parse_count(std::string_view text);

// Probes that the kernel refuses, with the reasons as the errors' messages.
struct RefusedProbe {
  program::ProbeId id;
  Error error;
};
// Skips the probes of a program that the kernel refuses, if they are matches of a wildcard or config.missing_probes
// allows it; otherwise fails with the reason. Fails also if `refused` are all matches of wildcards that there are.
Status leave_out(const spec::AttachRequest& request, const std::vector<RefusedProbe>& refused);

// Attaches the probes one by one, and skips probes that the kernel refuses.
Status attach_each_probe(const spec::AttachRequest& request,
                         const std::function<Status(const spec::AttachRequest&, program::ProbeId)>& attach_one);

// Adds the fields of programs whose context is pt_regs: registers, and arguments or, with `is_return`, the return
// value.
void add_registers(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types, bool is_return);

// Returns the context of perf event programs: registers but no arguments, because they can fire at any instruction.
spec::ProbeContext perf_event_context(spec::ContextRequest& request);

// Returns the context of programs that espy runs itself, once.
spec::ProbeContext once_context(spec::ContextRequest& request);

// Adds sarg0, sarg1, ...: the words on the stack at the entry of a function, where arguments are that do not fit in
// registers.
void add_stack_arguments(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types);

// Sets the frame that identifies a call of a user function: its stack pointer at the entry.
void add_frame(spec::ProbeContext& context, const kernel::Arch& arch, bool is_return);

// True for the raw tracepoints of all system calls, which the kernel takes a slow path to while they have a program.
// They have programs of their own, so that what these cost is known.
bool is_at_all_system_calls(std::string_view raw_tracepoint);

// For -lv: the parameters of a kernel function as "loff_t * pos", and its result, unless it is void, as "ssize_t
// retval".
std::vector<std::string> list_parameters(spec::ListRequest& request, const kernel::FunctionPrototype& function);
std::vector<std::string> list_result(spec::ListRequest& request, const kernel::FunctionPrototype& function);

// Returns the C spelling of a type, for listings: "unsigned long", "struct file *".
std::string c_spelling(const types::Types& types, types::TypeId type);

// Splits "function+0x10". If the offset is not a number, the whole text is the function name.
struct FunctionOffset {
  std::string function;
  uint64_t offset = 0;
};
FunctionOffset split_offset(const std::string& text);

// Splits "name" or "name [module]", as listed by Kernel::functions. The module is "vmlinux" if there is none.
struct KernelFunction {
  std::string name;
  std::string module;
};
KernelFunction split_module(std::string_view listed);

// Reports a kernel where threads would overwrite the frames of one another's user probes (needs_thread_stack() in
// lower/lower.cc), and returns whether it is one. None is known: Linux 6.13 and later do without a tail call only.
bool report_shared_frames(spec::BindRequest& request);

// The context and the attaching of uprobe, uretprobe and usdt. Probes are attached by one link per file where the
// kernel can; then they share a program in a file, or `is_for_any_file`. `probes`: all of the request, or the entries
// of a session.
spec::Share share_of_uprobe(kernel::Kernel& kernel, const program::Probe& probe, bool is_for_any_file);
spec::ProbeContext uprobe_context(spec::ContextRequest& request, bool is_return);
Status attach_uprobes(const spec::AttachRequest& request, std::span<const program::ProbeId> probes, bool is_return);
constexpr uint32_t kAttachUprobeSession = 57;  // BPF_TRACE_UPROBE_SESSION
// After spec::Share::method of uretprobes at return instructions, which have programs of their own.
constexpr std::string_view kAtReturns = " at returns";
// Whether an exception that passes the function of a probe ends the program: the kernel replaces its return address.
bool stops_exceptions(const program::Probe& probe);
// Whether it is at a return instruction.
bool is_at_return(const program::Probe& probe);

// Returns the request's probes of this provider, or all if there are none. The program of a session serves the probes
// of two providers, but is attached with the cookies of the entry probes; the kernel passes these to the returns, too.
std::vector<program::ProbeId> probes_of(const spec::AttachRequest& request, const spec::Provider& provider);

// Adds to the refused entries of a session the returns of the same functions. `entries`: entry probes of the session,
// or all probes of another program.
std::vector<RefusedProbe> with_returns(const spec::AttachRequest& request, std::span<const program::ProbeId> entries,
                                       std::vector<RefusedProbe> refused);

// Attaches a probe to a perf event in each current thread of a process, and in the threads that these start. Skips
// threads that have ended, because the first one may long before the others.
Status attach_to_threads(const spec::AttachRequest& request, program::ProbeId id, load::PerfEvent event, uint32_t pid);
// The same for several processes. Leaves out processes that have ended, unless all have.
Status attach_to_traced_threads(const spec::AttachRequest& request, program::ProbeId id, const load::PerfEvent& event,
                                std::span<const spec::TracedProcess> processes);

// ---- Types of the programs that uprobe, uretprobe and usdt are in.

// spec::Provider::find_type of these probe types: searches the debug information of Probe::target.
spec::ProgramType find_program_type(spec::ProgramTypeRequest& request);

// ---- What a kernel has instead of a function that an attach point names: for the hint where nothing matches.
//
// Facts: the names under which the compiler has left code of the function, whether they can be probed, and whether the
// kernel's types describe a function that has no code. Not facts, and said as such: functions with a similar name.

// Returns sentences without a full stop, separated by "; "; "" if there is nothing to say. The function is the last
// part of the request.
std::string tell_similar_functions(spec::ListRequest& request);

}  // namespace espy::probes
