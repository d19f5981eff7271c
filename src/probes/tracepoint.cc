// tracepoint: static tracepoints of the kernel, by category and event.
//
// The problem. A perf event for each tracepoint costs 33 ns a hit and up to 100 ms to detach; for all system calls,
// attaching takes half a minute.
//
// The approach. choose_method() selects the cheapest way to attach:
//
//   sys_enter_X, sys_exit_X   one raw tracepoint, sys_enter or sys_exit, for all of them. The program looks up the
//                             number of the system call and returns if no probe wants it. Arguments are read from the
//                             registers of the task, from which the kernel makes its own record, too. Measured
//                             with a read(2) of 184 ns: the raw tracepoint adds 78 ns to the calls that are traced and
//                             75 to all others, of which 10 are the program's; a perf event adds 137 and 45. It would
//                             also lose events while a system call on a map is preempted on its CPU, which kernels
//                             count from 6.7 on.
//   others, args not used     the raw tracepoint of the same name, if BTF has one. With cookies, a wildcard shares
//                             one program.
//   others, args used before  a perf event, for the order of the script.
//   others                    a perf event. The format file in tracefs describes its record.
//
// Limits. ftrace:* events are not tracepoints, and attach through perf. 32-bit system calls are skipped, as perf does,
// because their numbers have another meaning.
#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>

#include "base/strings.h"
#include "kernel/abi_constants.h"
#include "kernel/tracefs.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kTracepoint;

namespace {

constexpr std::string_view kSyscalls = "syscalls";
constexpr std::string_view kEnter = "sys_enter_";
constexpr std::string_view kExit = "sys_exit_";
// Attach methods.
constexpr std::string_view kRawEnter = "sys_enter";
constexpr std::string_view kRawExit = "sys_exit";
constexpr std::string_view kRaw = "raw";
constexpr std::string_view kPerf = "perf";
constexpr uint32_t kMaxSyscalls = 512;  // an upper bound of their numbers

bool is_syscall_event(const std::string& category, const std::string& event) {
  return category == kSyscalls && (event.starts_with(kEnter) || event.starts_with(kExit));
}

// The programs of a tracepoint's perf events run together, in the place of the first: a raw tracepoint between two of
// them would run after both.
bool has_perf_event(const spec::BindRequest& request, const program::Probe& probe) {
  return std::ranges::any_of(request.earlier, [&](const program::Probe& each) {
    return each.number != 0 && each.provider == kTracepoint.name && each.function == probe.function &&
           each.target == probe.target;
  });
}

// Returns the `share` of this event, for the cheapest attach method, and sets the number in `probe` that attaching
// needs.
spec::Share choose_method(spec::BindRequest& request, program::Probe& probe) {
  kernel::Kernel& kernel = request.kernel;
  const std::string own = probe.target + "/" + probe.function;
  const auto share = [](std::string_view method, std::string place = "") {
    return spec::Share{.method = std::string(method), .place = std::move(place)};
  };
  if (is_syscall_event(probe.target, probe.function)) {
    const bool is_enter = probe.function.starts_with(kEnter);
    const auto number = kernel.syscall_number(probe.function.substr(is_enter ? kEnter.size() : kExit.size()));
    if (number) {
      probe.number = *number;
      if (!is_enter) return share(kRawExit);
      return share(kRawEnter, request.uses.args ? own : "");
    }
  }
  const bool reads_record = request.uses.args || request.uses.context;
  if (!reads_record && !kernel.raw_tracepoints(probe.function).empty() && !has_perf_event(request, probe)) {
    const bool shares = kernel.has(kernel::Feature::kRawTracepointCookie) && !is_at_all_system_calls(probe.function);
    return share(kRaw, shares ? "" : own);
  }
  if (const auto tracepoint = kernel.tracepoint(request.types, probe.target, probe.function))
    probe.number = tracepoint->id;
  if (!reads_record && kernel.has(kernel::Feature::kPerfLinkCookie)) return share(kPerf);
  return share(kPerf, own);
}

// Under lockdown, tracefs cannot be read. System calls are still known by number, and raw tracepoints by BTF, without
// their category. The format of records is not known, so this returns nothing if the action reads the record.
std::vector<std::string> known_without_tracefs(spec::BindRequest& request) {
  const std::string& category = request.parts[0];
  const std::string& event = request.parts[1];
  if (request.uses.args || request.uses.context) return {};
  std::vector<std::string> out;
  if (glob_match(category, kSyscalls)) {
    for (uint32_t number = 0; number < kMaxSyscalls; ++number) {
      const auto name = request.kernel.syscall_name(number);
      for (const std::string_view boundary : {kEnter, kExit})
        if (name && glob_match(event, std::string(boundary) + *name))
          out.push_back(fmt::format("{}:{}{}", kSyscalls, boundary, *name));
    }
  }
  if (!has_wildcard(category) && category != kSyscalls && !has_wildcard(event) &&
      !request.kernel.raw_tracepoints(event).empty())
    out.push_back(category + ":" + event);
  return out;
}

// Returns the name of the system call that the tracepoint is for, if only other CPUs have it; else "".
std::string call_of_other_cpus(const spec::BindRequest& request) {
  if (request.parts[0] != kSyscalls) return "";
  for (const std::string_view boundary : {kEnter, kExit}) {
    if (!request.parts[1].starts_with(boundary)) continue;
    const std::string call = request.parts[1].substr(boundary.size());
    if (kernel::is_syscall_of_others(request.kernel.arch(), call)) return call;
  }
  return "";
}

// Reports an unknown tracepoint, with the most similar name as a hint. The caller does not have the list of names.
void report_not_found(spec::BindRequest& request) {
  const std::string& category = request.parts[0];
  const std::string& event = request.parts[1];
  if (!request.kernel.knows(kernel::Fact::kTracepoints)) {
    report_not_known(request.missing, request,
                     fmt::format("whether there is a tracepoint `{}:{}`, and what its fields are,", category, event));
    return;
  }
  if (request.kernel.tracepoints("*", "*").empty()) {
    const bool is_locked = request.kernel.lockdown() == kernel::Lockdown::kConfidentiality;
    const std::string raw =
        category != kSyscalls ? event : std::string(event.starts_with(kExit) ? kRawExit : kRawEnter);
    request.missing.error("no-tracefs", request.point.span,
                          "tracepoints cannot be looked up: " + kernel::why_unreadable(request.kernel),
                          "use `rawtracepoint:" + raw + "`" +
                              (is_locked ? ", or a tracepoint without wildcard and `args`"
                                         : ", or " + kernel::how_to_read_tracefs(request.kernel)));
    return;
  }
  if (has_wildcard(category + event)) return;
  const std::string missing = "there is no tracepoint `" + category + ":" + event + "`";
  if (const std::string call = call_of_other_cpus(request); !call.empty()) {
    const std::string hint =
        fmt::format("{} has no system call `{}`; `config = {{ missing_probes = \"ignore\" }}` skips it",
                    request.kernel.arch().name, call);
    request.missing.error("no-such-tracepoint", request.point.span, missing, hint);
    return;
  }
  std::vector<std::string> known = request.kernel.tracepoints(category, "*");
  if (known.empty()) known = request.kernel.tracepoints("*", event);
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string near = nearest(category + ":" + event, names);
  if (!near.empty())
    request.missing.error("no-such-tracepoint", request.point.span, missing, "did you mean `" + near + "`?");
}

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (request.parts.size() == 1 && has_wildcard(request.parts[0])) {  // all events of the categories
    const std::string parts[] = {request.parts[0], "*"};
    spec::BindRequest whole = request;
    whole.parts = parts;
    return bind(whole);
  }
  if (request.parts.size() != 2)
    return report_wrong_form(request, kTracepoint.form, "tracepoint:syscalls:sys_enter_openat");
  std::vector<spec::BoundProbe> out;
  std::vector<std::string> all = request.kernel.tracepoints(request.parts[0], request.parts[1]);
  if (all.empty() && request.kernel.lockdown() == kernel::Lockdown::kConfidentiality)
    all = known_without_tracefs(request);
  for (const std::string& found : all) {
    const size_t colon = found.find(':');
    spec::BoundProbe bound;
    bound.probe.provider = kTracepoint.name;
    bound.probe.name = "tracepoint:" + found;
    bound.probe.target = found.substr(0, colon);
    bound.probe.function = found.substr(colon + 1);
    bound.probe.is_optional = has_wildcard(request.parts[0] + request.parts[1]);
    bound.probe.span = request.point.span;
    bound.share = choose_method(request, bound.probe);
    out.push_back(std::move(bound));
  }
  if (out.empty()) report_not_found(request);
  // The call restores the registers of before the signal, and no number of a call is left for the tracepoint.
  if (out.size() == 1 && out[0].probe.function == "sys_exit_rt_sigreturn" && !request.is_listing())
    request.diagnostics.warning("never-fires", request.point.span,
                                "the kernel does not report the ends of rt_sigreturn(2): the probe never fires",
                                "sys_enter_rt_sigreturn has the calls");
  return out;
}

// ---- Contexts -------------------------------------------------------------------------------------------------------

using spec::Recipe;

constexpr uint32_t kRawArgumentBytes = 8;  // bpf_raw_tracepoint_args: u64 args[]

// args[0] of sys_enter and sys_exit is a pointer to the task's pt_regs. Under lockdown, memory cannot be read through
// it; the registers are read through a helper instead, which is slower.
Recipe behind_registers(kernel::Kernel& kernel, uint32_t offset, uint8_t size_bytes = 8) {
  const bool is_readable = kernel.has(kernel::Feature::kProbeReadKernel);
  return Recipe{is_readable ? Recipe::Kind::kBehindPointer : Recipe::Kind::kTaskRegister, 0, offset, size_bytes, false};
}

void set_syscall_dispatch(spec::ProbeContext& out, kernel::Kernel& kernel, bool is_enter) {
  const kernel::Arch& arch = kernel.arch();
  out.kind = program::ProgramKind::kRawTracepoint;
  out.dispatch = spec::ProbeContext::Dispatch::kNumber;
  out.is_at_all_system_calls = true;
  out.hook = is_enter ? kRawEnter : kRawExit;
  out.part_of_call = is_enter ? spec::CallBoundary::kEntry : spec::CallBoundary::kReturn;
  out.pointers = types::AddressSpace::kUser;
  out.number = is_enter ? Recipe{Recipe::Kind::kContext, kRawArgumentBytes, 0, 8, false}
                        : behind_registers(kernel, arch.syscall_number_offset, arch.syscall_number_bytes);
  if (arch.compat_task) out.compat_register = behind_registers(kernel, arch.compat_task->offset_bytes);
}

void add_syscall_args(spec::ProbeContext& out, const kernel::Tracepoint& tracepoint, const types::Types& types,
                      kernel::Kernel& kernel, bool is_enter) {
  const kernel::Arch& arch = kernel.arch();
  size_t argument = 0;
  for (const kernel::TracepointField& field : tracepoint.fields) {
    Recipe recipe = out.number;  // __syscall_nr
    if (field.name != "__syscall_nr") {
      recipe = is_enter ? behind_registers(kernel, arch.syscall_argument_offsets[argument++])
                        : Recipe{Recipe::Kind::kContext, kRawArgumentBytes, 0, 8, true};
    }
    // Each argument has eight bytes in the record; of an `int`, only four are valid.
    const types::Type& type = types[field.type];
    recipe.size_bytes = static_cast<uint8_t>(std::min<uint32_t>(type.size_bytes, 8));
    recipe.is_signed = type.is_signed;
    out.args.push_back({field.name, field.type, recipe, {}, {}, field.c_type});
    if (argument == arch.syscall_argument_offsets.size()) break;
  }
}

Recipe record_recipe(const kernel::TracepointField& field, const types::Types& types) {
  const bool is_scalar = field.size_bytes <= 8 && !types::is_by_reference(types[field.type]);
  Recipe recipe{Recipe::Kind::kContext, field.offset_bytes, 0, static_cast<uint8_t>(field.size_bytes), field.is_signed};
  if (field.is_data_loc) {
    recipe.kind = field.is_relative_loc ? Recipe::Kind::kRelativeLoc : Recipe::Kind::kDataLoc;
    recipe.size_bytes = 4;
  } else if (!is_scalar) {
    recipe.kind = Recipe::Kind::kContextAddress;
  }
  return recipe;
}

void add_record_args(spec::ProbeContext& out, const kernel::Tracepoint& tracepoint, const types::Types& types) {
  for (const kernel::TracepointField& field : tracepoint.fields)
    out.args.push_back({field.name, field.type, record_recipe(field, types), {}, {}, field.c_type});
}

spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  const std::string& method = request.share.method;
  const program::Probe& probe = request.probes.front();
  const bool is_syscall = method == kRawEnter || method == kRawExit;
  if (is_syscall) set_syscall_dispatch(out, request.kernel, method == kRawEnter);
  if (method == kPerf) out.kind = program::ProgramKind::kTracepoint;
  if (method == kRaw) out.is_at_all_system_calls = is_at_all_system_calls(probe.function);
  if (!is_syscall && request.share.place.empty() && request.probes.size() > 1)
    out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  if (!request.uses.args) return out;
  const auto tracepoint = request.kernel.tracepoint(request.types, probe.target, probe.function);
  if (!tracepoint) return out;
  if (is_syscall) {
    add_syscall_args(out, *tracepoint, request.types, request.kernel, method == kRawEnter);
  } else {
    add_record_args(out, *tracepoint, request.types);
  }
  return out;
}

// ---- Attaching ------------------------------------------------------------------------------------------------------

Status attach_one(const spec::AttachRequest& request, program::ProbeId id) {
  constexpr int kNotSupported = 524;  // ENOTSUPP, which the kernel returns but does not publish
  const program::Probe& probe = request.program.probes[id];
  const program::BpfProgram& code = request.program.programs[request.program_id];
  if (code.kind == program::ProgramKind::kRawTracepoint) {
    const uint64_t cookie = request.probes.size() > 1 ? id.index : 0;  // older kernels do not accept cookies
    return request.machine.attach_raw_tracepoint(request.program_id, probe.function, cookie);
  }
  load::PerfEvent event;
  event.type = PERF_TYPE_TRACEPOINT;
  event.config = probe.number;
  const Status status = request.machine.attach_perf_event(request.program_id, event, id.index);
  // Events that users created (kprobe_events, uprobe_events) need other program types.
  if (!status && status.error().code == kNotSupported)
    return fail("the kernel does not run tracepoint programs there", kNotSupported);
  return status;
}

Status attach(spec::AttachRequest& request) {
  const program::Probe& first = request.program.probes[request.probes.front()];
  const bool is_raw = request.program.programs[request.program_id].kind == program::ProgramKind::kRawTracepoint;
  if (is_raw && is_syscall_event(first.target, first.function)) {
    const std::string_view raw = first.function.starts_with(kEnter) ? kRawEnter : kRawExit;
    return request.machine.attach_raw_tracepoint(request.program_id, std::string(raw), 0);
  }
  return attach_each_probe(request, attach_one);
}

// "char prev_comm[16]", "__data_loc char[] filename".
std::string as_in_format(const kernel::TracepointField& field) {
  const size_t bracket = field.is_data_loc || field.is_relative_loc ? std::string::npos : field.c_type.find('[');
  const std::string of_name = bracket == std::string::npos ? "" : field.c_type.substr(bracket);
  return field.c_type.substr(0, bracket) + " " + field.name + of_name;
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  // A single part is an event of any category: `-l 'sched_*'`.
  const std::string category = request.parts.size() < 2 ? "*" : request.parts[0];
  const std::string event = request.parts.empty() ? "*" : request.parts.back();
  std::vector<spec::ListedProbe> out;
  for (const std::string& name : request.kernel.tracepoints(category, event)) {
    spec::ListedProbe listed{"tracepoint:" + name, {}};
    const size_t colon = name.find(':');
    if (request.verbose) {
      const auto tracepoint = request.kernel.tracepoint(request.types, name.substr(0, colon), name.substr(colon + 1));
      if (tracepoint)
        for (const kernel::TracepointField& field : tracepoint->fields) listed.arguments.push_back(as_in_format(field));
    }
    out.push_back(std::move(listed));
  }
  return out;
}

}  // namespace

extern const spec::Provider kTracepoint = {
    .name = "tracepoint",
    .aliases = {"t"},
    .doc = "Fires at a static tracepoint of the kernel, whose fields are `args.NAME`. Both parts may have wildcards.",
    .form = "tracepoint:CATEGORY:EVENT",
    .bind = bind,
    .context = context,
    .attach = attach,
    .list = list,
    .capability = "CAP_DAC_READ_SEARCH",
    .example = "tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }"};

// ---- rawtracepoint: a tracepoint with its own arguments, without the record that the kernel makes of them for
// tracepoint probes.

extern const spec::Provider kRawTracepoint;

namespace {

constexpr uint32_t kArgumentBytes = 8;
constexpr uint32_t kMaxArguments = 12;  // MAX_BPF_FUNC_ARGS in the kernel

// Returns "vmlinux" or the module of an event; "" if the first of two parts does not match it.
std::string module_of(kernel::Kernel& kernel, std::span<const std::string> parts, std::string_view event) {
  const std::string module = kernel.raw_tracepoint_module(event);
  if (parts.size() < 2) return module.empty() ? "vmlinux" : module;
  return module.empty() ? parts[0] : glob_match(parts[0], module) ? module : "";
}

std::vector<spec::BoundProbe> bind_raw(spec::BindRequest& request) {
  if (request.parts.empty() || request.parts.size() > 2)
    return report_wrong_form(request, kRawTracepoint.form, "rawtracepoint:sched_switch");
  std::vector<spec::BoundProbe> out;
  for (const std::string& event : request.kernel.raw_tracepoints(request.parts.back())) {
    const std::string module = module_of(request.kernel, request.parts, event);
    if (module.empty()) continue;
    spec::BoundProbe bound;
    bound.probe.provider = kRawTracepoint.name;
    bound.probe.target = module;
    bound.probe.function = event;
    bound.probe.name = "rawtracepoint:" + bound.probe.target + ":" + event;
    bound.probe.span = request.point.span;
    const bool shares = !request.uses.args && !is_at_all_system_calls(event) &&
                        request.kernel.has(kernel::Feature::kRawTracepointCookie);
    bound.share.place = shares ? "" : event;
    out.push_back(std::move(bound));
  }
  return out;
}

spec::ProbeContext context_raw(spec::ContextRequest& request) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kRawTracepoint;
  out.context_struct = "bpf_raw_tracepoint_args";
  out.is_at_all_system_calls = is_at_all_system_calls(request.probes.front().function);
  if (request.share.place.empty() && request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  const auto prototype = request.kernel.find_raw_tracepoint(request.types, request.probes.front().function);
  const size_t count = prototype ? prototype->parameters.size() : kMaxArguments;
  for (uint32_t i = 0; i < count; ++i) {
    const spec::Recipe recipe{spec::Recipe::Kind::kContext, i * kArgumentBytes, 0, 8, false};
    out.arguments.push_back({fmt::format("arg{}", i), request.types.uint64(), recipe});
    if (!prototype) continue;
    const types::Member& parameter = prototype->parameters[i];
    spec::Recipe typed = recipe;
    const types::Type& type = request.types[parameter.type];
    if (type.size_bytes < 8) typed.size_bytes = static_cast<uint8_t>(type.size_bytes);
    typed.is_signed = type.is_signed;
    out.args.push_back({parameter.name, parameter.type, typed});
  }
  return out;
}

Status attach_raw(spec::AttachRequest& request) {
  return attach_each_probe(request, [](const spec::AttachRequest& each, program::ProbeId id) {
    const uint64_t cookie = each.probes.size() > 1 ? id.index : 0;
    return each.machine.attach_raw_tracepoint(each.program_id, each.program.probes[id].function, cookie);
  });
}

std::vector<spec::ListedProbe> list_raw(spec::ListRequest& request) {
  const std::string pattern = request.parts.empty() ? "*" : request.parts.back();
  std::vector<spec::ListedProbe> out;
  for (const std::string& event : request.kernel.raw_tracepoints(pattern)) {
    const std::string module = module_of(request.kernel, request.parts, event);
    if (module.empty()) continue;
    spec::ListedProbe listed{fmt::format("rawtracepoint:{}:{}", module, event), {}};
    if (request.verbose) {
      if (const auto prototype = request.kernel.find_raw_tracepoint(request.types, event))
        listed.arguments = list_parameters(request, *prototype);
    }
    out.push_back(std::move(listed));
  }
  return out;
}

}  // namespace

extern const spec::Provider kRawTracepoint = {
    .name = "rawtracepoint",
    .aliases = {"rt"},
    .doc =
        "Fires at a tracepoint with the arguments of the kernel's call: `args.NAME` "
        "with their types, or arg0, arg1, ...",
    .form = "rawtracepoint:EVENT or rawtracepoint:MODULE:EVENT",
    .bind = bind_raw,
    .context = context_raw,
    .attach = attach_raw,
    .list = list_raw,
    .example = "rawtracepoint:sched_switch { @[args.next.comm] = count(); }"};

}  // namespace espy::probes
