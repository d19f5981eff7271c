// kprobe and kretprobe: kernel functions, or any kernel instruction.
//
// The problem. A wildcard matches hundreds of functions, and a perf event for each takes milliseconds to attach and a
// grace period to detach.
//
// The approach. One kprobe_multi link (Linux 5.18, with CONFIG_FPROBE) takes the names of all functions of an attach
// point, and a cookie for each: the index of the probe. It is based on ftrace, so it supports only entries and returns
// of functions that ftrace lists. Other addresses and functions, and all probes on older kernels, use perf events of
// the kprobe PMU.
//
// A kprobe and a kretprobe of the same functions can share one program and one link, as a session
// (lower/lower.cc).
//
// One name can be that of several functions, static ones of several source files or modules. The kernel attaches by
// name to one of them, or refuses. So these are attached by their addresses, all with one cookie: they are one probe.
//
// Limits. Wildcards are matched against the list of ftrace. Functions that the kernel still refuses (its blacklist) are
// skipped, unless none is left; a function that is named in full must attach.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/strings.h"
#include "kernel/functions.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kKprobe;
extern const spec::Provider kKretprobe;

namespace {

constexpr uint32_t kAttachKprobeMulti = 42;    // BPF_TRACE_KPROBE_MULTI
constexpr uint32_t kAttachKprobeSession = 56;  // BPF_TRACE_KPROBE_SESSION
// Attach methods.
constexpr std::string_view kMulti = "multi";
constexpr std::string_view kPerf = "perf";

// Functions of one name, and of one module.
struct Listed {
  KernelFunction function;
  size_t count = 0;          // of those that can be traced
  size_t count_of_name = 0;  // the same in all modules
};

std::vector<Listed> listed_functions(const std::vector<std::string>& functions) {
  std::vector<Listed> out;
  std::map<std::string_view, size_t> places;
  std::map<std::string, size_t> names;
  for (const std::string& each : functions) {
    const auto [place, is_new] = places.try_emplace(each, out.size());
    if (is_new) out.push_back({split_module(each)});
    ++out[place->second].count;
    ++names[out[place->second].function.name];
  }
  for (Listed& each : out) each.count_of_name = names[each.function.name];
  return out;
}

template <const spec::Provider& kRow>
class Binder {
 public:
  explicit Binder(spec::BindRequest& request) : request_(request) {}

  std::vector<spec::BoundProbe> bind() {
    if (request_.parts.empty() || request_.parts.size() > 2)
      return report_wrong_form(request_, kRow.form, fmt::format("{}:vfs_read", kRow.name));
    if (!request_.kernel.has(kernel::Feature::kKprobe))
      return report_unavailable(request_, "no-kprobes", "this kernel has no kprobes (CONFIG_KPROBES)");
    const std::string& place = request_.parts.back();
    if (request_.parts.size() == 2) module_ = request_.parts[0];
    if (has_wildcard(place)) {
      add_all(place);
    } else if (place.starts_with("0x")) {
      add_address(place);
    } else {
      add_function(split_offset(place));
    }
    if (request_.is_foretold() && !out_.empty()) foretell();
    return std::move(out_);
  }

 private:
  void error(std::string_view id, const std::string& message, const std::string& hint = "") {
    request_.diagnostics.error(id, request_.point.span, message, hint);
  }

  void add_all(const std::string& glob) {
    is_wildcard_ = true;
    for (const Listed& listed : listed_functions(request_.kernel.functions(glob))) {
      const std::string& name = listed.function.name;
      if (!is_in_module(listed.function) || why_refused(request_, name, kIsReturn, true)) continue;
      if (!request_.config.allow_unsafe && kernel::is_left_out_of_wildcard(name, glob)) continue;
      add(listed.function, 0, true);
      out_.back().probe.number = listed.count_of_name > 1 ? listed.count : 0;
    }
  }

  // Kernels refuse kprobes on functions that ftrace does not list, unless they are built with
  // CONFIG_KPROBE_EVENTS_ON_NOTRACE, and recent ones on names that several functions have.
  std::string why_uncertain() const {
    const program::Probe& first = out_.front().probe;
    if (is_wildcard_ || first.address != 0) return "";
    if (request_.kernel.functions(first.function).empty())
      return "ftrace does not list it, and most kernels do not allow probes elsewhere";
    const std::vector<std::string> code = request_.kernel.code(first.function);
    const auto is_there = [&](const std::string& each) { return split_module(each).module == first.target; };
    return std::ranges::count_if(code, is_there) > 1 ? "the kernel has several functions of this name" : "";
  }

  // Functions on ftrace's list take kprobe_multi, which does not ask the list of those that are forbidden.
  void foretell() {
    using kernel::Fact;
    if (request_.config.missing_probes != spec::MissingProbes::kError) return;
    const std::string name = fmt::format("{}:{}", kRow.name, request_.parts.back());
    const bool asks_forbidden = std::ranges::any_of(out_, [](const auto& each) { return each.share.method != kMulti; });
    const bool is_known = request_.kernel.knows(Fact::kTraceableFunctions) &&
                          (!asks_forbidden || request_.kernel.knows(Fact::kForbiddenFunctions));
    if (!is_known) return report_not_known(request_.diagnostics, request_, "whether that kernel allows `" + name + "`");
    const std::string why = why_uncertain();
    if (!why.empty()) error(kNotKnown, fmt::format("whether `{}` can be attached is not known: {}", name, why));
  }

  bool is_in_module(const KernelFunction& function) const {
    return module_.empty() || glob_match(module_, function.module);
  }

  void add_function(const FunctionOffset& place) {
    if (kIsReturn && place.offset > 0)
      return error("offset-on-return", "a kretprobe fires at the return of a function and takes no offset");
    if (const auto why = why_refused(request_, place.function, kIsReturn, true))
      return report_refused(request_, place.function, *why);
    for (const Listed& listed : listed_functions(request_.kernel.functions(place.function))) {
      if (!is_in_module(listed.function)) continue;
      if (place.offset > 0 && (listed.count > 1 || !out_.empty())) {
        out_.clear();
        return error("ambiguous-function", fmt::format("{} functions are named `{}`, and an offset needs a single one",
                                                       listed.count_of_name, place.function));
      }
      add(listed.function, place.offset, place.offset == 0);
      out_.back().probe.number = listed.count_of_name > 1 ? listed.count : 0;
    }
    if (!out_.empty() || request_.kernel.has_given_functions()) return;
    // ftrace does not list it, but a perf event may reach it.
    if (module_.empty() && !request_.kernel.code(place.function).empty())
      add({place.function, "vmlinux"}, place.offset, false);
  }

  void add_address(const std::string& text) {
    const auto address = parse_int(text);
    if (!address) return;
    if (kIsReturn) return error("address-on-return", "a kretprobe takes the name of a function, not an address");
    if (!request_.config.allow_unsafe)
      return error("needs-unsafe", "a probe at a raw address may crash the kernel and needs --unsafe");
    add({text, "vmlinux"}, 0, false);
    out_.back().probe.address = static_cast<uint64_t>(*address);
  }

  void add(const KernelFunction& function, uint64_t offset, bool is_traceable) {
    spec::BoundProbe bound;
    bound.probe.provider = kRow.name;
    bound.probe.target = function.module;
    bound.probe.function = function.name;
    bound.probe.offset = offset;
    bound.probe.is_optional = is_wildcard_;
    bound.probe.name = fmt::format("{}:{}", kRow.name, function.name);
    if (!module_.empty()) bound.probe.name = fmt::format("{}:{}:{}", kRow.name, function.module, function.name);
    if (offset > 0) bound.probe.name += fmt::format("+{}", offset);
    bound.probe.span = request_.point.span;
    if (is_traceable && request_.kernel.has(kernel::Feature::kKprobeMulti)) {
      bound.share.method = kMulti;
    } else {
      bound.share.method = kPerf;
      if (!request_.kernel.has(kernel::Feature::kPerfLinkCookie)) bound.share.place = bound.probe.name;
    }
    out_.push_back(std::move(bound));
  }

  static constexpr bool kIsReturn = &kRow == &kKretprobe;
  spec::BindRequest& request_;
  std::string module_;  // a pattern; "" for any
  bool is_wildcard_ = false;
  std::vector<spec::BoundProbe> out_;
};

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  return Binder<kRow>(request).bind();
}

// Entries run in the reverse order of attaching: add_new_kprobe() in kernel/kprobes.c, add_ftrace_ops() in
// kernel/trace/ftrace.c, insert_fprobe_node() in kernel/trace/fprobe.c. Returns run in the reverse order of the entries
// (kernel/trace/rethook.c), except that the function graph tracer keeps it.
bool is_last_attached_first(const spec::ContextRequest& request, bool is_return) {
  return !is_return || (request.share.method == kMulti && request.kernel.has(kernel::Feature::kFprobeGraph));
}

template <bool kIsReturn>
spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kKprobe;
  add_registers(out, request.kernel.arch(), request.types, kIsReturn);
  if (!kIsReturn) add_stack_arguments(out, request.kernel.arch(), request.types);
  out.context_struct = "pt_regs";
  out.part_of_call = out.boundary = kIsReturn ? spec::CallBoundary::kReturn : spec::CallBoundary::kEntry;
  out.is_last_attached_first = is_last_attached_first(request, kIsReturn);
  if (request.share.method == kMulti) {
    out.expected_attach_type = kAttachKprobeMulti;
    if (request.kernel.has(kernel::Feature::kKprobeSession)) out.session_attach_type = kAttachKprobeSession;
  }
  if (request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  return out;
}

// ---- Attaching ------------------------------------------------------------------------------------------------------

load::KprobeMulti slice(const load::KprobeMulti& whole, size_t begin, size_t end) {
  load::KprobeMulti part;
  part.is_return = whole.is_return;
  for (size_t i = begin; i < end; ++i) {
    part.functions.push_back(whole.functions[i]);
    part.cookies.push_back(whole.cookies[i]);
    if (!whole.addresses.empty()) part.addresses.push_back(whole.addresses[i]);
  }
  return part;
}

std::string reason_of(const Error& error) {
  switch (error.code) {
    case EILSEQ: return "the address is in the middle of an instruction";
    case ENOENT: return "the kernel has no such function";
    case EADDRNOTAVAIL:
    case ESRCH: return "the kernel does not allow tracing it";
    case EINVAL: return "the kernel does not allow a probe there";
    default: return error.message;
  }
}

// Attaches to as many functions as possible, and adds the others to `refused`. If the kernel cannot find or hook one of
// the functions, it refuses them all and does not say which, so this retries with each half.
void attach_with_bisection(load::Machine& machine, program::ProgramId program, const load::KprobeMulti& probes,
                           std::vector<RefusedProbe>& refused) {
  const Status status = machine.attach_kprobe_multi(program, probes);
  if (status) return;
  const size_t count = probes.functions.size();
  const Error& error = status.error();
  if (count == 1 || error.code == ECANCELED) {
    const program::ProbeId id{static_cast<uint32_t>(probes.cookies[0])};
    return refused.push_back({id, {reason_of(error), error.code, error.hint}});
  }
  attach_with_bisection(machine, program, slice(probes, 0, count / 2), refused);
  attach_with_bisection(machine, program, slice(probes, count / 2, count), refused);
}

// "name" or "name [module]"
std::string listed_name(const program::Probe& probe) {
  return probe.target == "vmlinux" ? probe.function : fmt::format("{} [{}]", probe.function, probe.target);
}

// Tells that a probe is not at all functions of its name.
void skip_others(load::Machine& machine, const program::Probe& probe, size_t attached, const std::string& why) {
  const std::string which = fmt::format("{} of the {} functions of this name", probe.number - attached, probe.number);
  machine.skip({fmt::format("{} ({})", probe.name, which), why, true});
}

// Attaches to all functions of each name. Those whose addresses are not known are attached by name, to one of them.
void attach_to_addresses(spec::AttachRequest& request, load::KprobeMulti by_name, std::vector<RefusedProbe>& refused) {
  std::vector<std::string> names;
  for (const uint64_t cookie : by_name.cookies)
    names.push_back(listed_name(request.program.probes[program::ProbeId{static_cast<uint32_t>(cookie)}]));
  const auto addresses = request.machine.kernel_addresses(names);
  load::KprobeMulti unknown{.is_return = by_name.is_return}, known{.is_return = by_name.is_return};
  std::map<uint64_t, size_t> attached;  // by cookie
  for (size_t i = 0; i < names.size(); ++i) {
    load::KprobeMulti& out = addresses[i].empty() ? unknown : known;
    for (size_t k = 0; k < std::max<size_t>(addresses[i].size(), 1); ++k) {
      out.functions.push_back(by_name.functions[i]);
      out.cookies.push_back(by_name.cookies[i]);
      if (!addresses[i].empty()) out.addresses.push_back(addresses[i][k]);
      ++attached[by_name.cookies[i]];
    }
  }
  std::vector<RefusedProbe> failed;
  if (!known.functions.empty()) attach_with_bisection(request.machine, request.program_id, known, failed);
  if (!unknown.functions.empty()) attach_with_bisection(request.machine, request.program_id, unknown, failed);
  for (const RefusedProbe& each : failed) --attached[each.id.index];
  for (const auto& [cookie, count] : attached) {
    const program::ProbeId id{static_cast<uint32_t>(cookie)};
    const program::Probe& probe = request.program.probes[id];
    const auto why = std::ranges::find(failed, id, &RefusedProbe::id);
    if (count == 0 && why != failed.end())
      refused.push_back(*why);
    else if (count < probe.number)
      skip_others(request.machine, probe, count,
                  why == failed.end() ? "their addresses are not known" : why->error.message);
  }
}

Status attach_multi(spec::AttachRequest& request, bool is_return, std::span<const program::ProbeId> probes) {
  load::KprobeMulti multi{.is_return = is_return}, shared{.is_return = is_return};
  for (const program::ProbeId id : probes) {
    const program::Probe& probe = request.program.probes[id];
    load::KprobeMulti& out = probe.number > 0 ? shared : multi;
    out.functions.push_back(probe.function);
    out.cookies.push_back(id.index);
  }
  std::vector<RefusedProbe> refused;
  if (!multi.functions.empty()) attach_with_bisection(request.machine, request.program_id, multi, refused);
  if (!shared.functions.empty()) attach_to_addresses(request, std::move(shared), refused);
  return leave_out(request, with_returns(request, probes, std::move(refused)));
}

// Calls in progress, of 64 bytes each, of which the returns are seen: as many as the kernel allows
// (KRETPROBE_MAXACTIVE_MAX), fewer of each function of a wildcard.
constexpr uint32_t kMaxCalls = 1 << 12;
constexpr uint32_t kMaxCallsOfEach = 256;

template <bool kIsReturn>
Status attach_one(const spec::AttachRequest& request, program::ProbeId id) {
  const program::Probe& probe = request.program.probes[id];
  load::Kprobe kprobe{probe.address == 0 ? probe.function : "", probe.address, probe.offset, kIsReturn};
  if (kIsReturn) kprobe.max_calls = probe.is_optional ? kMaxCallsOfEach : kMaxCalls;
  const auto addresses = probe.number > 0 && probe.offset == 0
                             ? request.machine.kernel_addresses({listed_name(probe)}).front()
                             : std::vector<uint64_t>();
  size_t attached = 0;
  for (const uint64_t address : addresses)
    attached += request.machine.attach_kprobe(request.program_id, {"", address, 0, kIsReturn}, id.index).has_value();
  if (attached > 0) {
    if (attached < probe.number)
      skip_others(request.machine, probe, attached, "the kernel does not allow a probe there");
    return {};
  }
  const Status status = request.machine.attach_kprobe(request.program_id, kprobe, id.index);
  if (status && probe.number > 1) skip_others(request.machine, probe, 1, "their addresses are not known");
  if (status) return status;
  return fail(reason_of(status.error()), status.error().code, status.error().hint);
}

template <bool kIsReturn>
Status attach(spec::AttachRequest& request) {
  const program::BpfProgram& code = request.program.programs[request.program_id];
  if (code.expected_attach_type == kAttachKprobeSession)
    return attach_multi(request, false, probes_of(request, kKprobe));
  if (code.expected_attach_type == kAttachKprobeMulti) return attach_multi(request, kIsReturn, request.probes);
  return attach_each_probe(request, attach_one<kIsReturn>);
}

// What BTF says of a function, for -lv.
template <const spec::Provider& kRow>
std::vector<std::string> describe(spec::ListRequest& request, const KernelFunction& function) {
  const auto prototype = request.kernel.find_function(request.types, function.name, function.module);
  if (!prototype) return {};
  return &kRow == &kKprobe ? list_parameters(request, *prototype) : list_result(request, *prototype);
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  if (!request.kernel.has(kernel::Feature::kKprobe)) return {};
  std::vector<spec::ListedProbe> out;
  const bool has_module = request.parts.size() > 1;
  const auto found = request.kernel.functions(request.parts.empty() ? "*" : request.parts.back());
  for (const Listed& each : listed_functions(found)) {
    const KernelFunction& function = each.function;
    if (has_module && !glob_match(request.parts[0], function.module)) continue;
    const std::string module = has_module ? function.module + ":" : "";
    spec::ListedProbe listed{fmt::format("{}:{}{}", kRow.name, module, function.name), {}};
    if (request.verbose) listed.arguments = describe<kRow>(request, function);
    out.push_back(std::move(listed));
  }
  return out;
}

}  // namespace

extern const spec::Provider kKprobe = {
    .name = "kprobe",
    .aliases = {"k"},
    .doc =
        "Fires at the entry of a kernel function, or at an instruction inside it. Arguments are arg0, arg1, ...; "
        "wildcards skip functions that cannot be traced. A raw address needs `--unsafe`.",
    .form = "kprobe:FUNCTION, kprobe:MODULE:FUNCTION, kprobe:FUNCTION+OFFSET or kprobe:0xADDRESS",
    .bind = bind<kKprobe>,
    .context = context<false>,
    .attach = attach<false>,
    .list = list<kKprobe>,
    .tell_similar = tell_similar_functions,
    .return_provider = &kKretprobe,
    .example = "kprobe:vfs_read { @[comm] = count(); }"};

extern const spec::Provider kKretprobe = {
    .name = "kretprobe",
    .aliases = {"kr"},
    .doc = "Fires at the return of a kernel function. `retval` is the return value.",
    .form = "kretprobe:FUNCTION or kretprobe:MODULE:FUNCTION",
    .bind = bind<kKretprobe>,
    .context = context<true>,
    .attach = attach<true>,
    .list = list<kKretprobe>,
    .tell_similar = tell_similar_functions,
    .example = "kretprobe:vfs_read { @bytes = hist((int64)retval); }"};

}  // namespace espy::probes
