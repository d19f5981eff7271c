// kprobe, kretprobe: functions of the kernel, or any instruction of it.
//
// The problem is the one of uprobes: a wildcard stands for hundreds of functions, and a perf event each costs
// milliseconds to attach and a grace period to detach.
//
// The trick is the same: one kprobe_multi link (Linux 5.18, and CONFIG_FPROBE) takes the names of all functions of an
// attach point, with a cookie each that is the probe's index. It stands on ftrace's hooks, so it takes only entries and
// returns of functions that ftrace lists; an instruction behind an entry, an address, or a function that ftrace does
// not list, goes through a perf event of the kprobe PMU, as everything does on older kernels.
//
// A wildcard leaves out what the kernel will not probe: the list that it is matched against is ftrace's, and what is
// refused all the same (there is a blacklist, and static functions that share a name) is passed over, as long as
// something is left. What was named in full must attach.
//
// Where a kprobe and a kretprobe have the same functions, one program and one link may serve both: a session
// (lower/merge_programs.h).
#include <fmt/format.h>

#include <cerrno>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/all.h"
#include "probes/common.h"

namespace espy::probes {

namespace {

constexpr uint32_t kAttachKprobeMulti = 42;    // BPF_TRACE_KPROBE_MULTI
constexpr uint32_t kAttachKprobeSession = 56;  // BPF_TRACE_KPROBE_SESSION
// Ways to attach: what `share` starts with.
constexpr std::string_view kMulti = "multi";
constexpr std::string_view kPerf = "perf";

template <const spec::Provider& kRow>
class Binder {
 public:
  explicit Binder(spec::BindRequest& request) : request_(request) {}

  std::vector<spec::BoundProbe> bind() {
    if (request_.parts.empty() || request_.parts.size() > 2) return wrong_form(request_, kRow.form, "kprobe:vfs_read");
    if (!request_.kernel.has(kernel::Feature::kKprobe))
      return not_here(request_, "no-kprobes", "this kernel has no kprobes (CONFIG_KPROBES)");
    const std::string& place = request_.parts.back();
    if (request_.parts.size() == 2) module_ = request_.parts[0];
    if (has_wildcard(place)) {
      add_all(place);
    } else if (place.starts_with("0x")) {
      add_address(place);
    } else {
      add_function(split_offset(place));
    }
    return std::move(out_);
  }

 private:
  void error(std::string_view id, const std::string& message, const std::string& hint = "") {
    request_.diagnostics.error(id, request_.point.span, message, hint);
  }

  void add_all(const std::string& glob) {
    is_wildcard_ = true;
    for (const std::string& found : request_.kernel.functions(glob)) {
      const KernelFunction function = split_module(found);
      if (is_in_module(function)) add(function, 0, true);
    }
  }

  bool is_in_module(const KernelFunction& function) const {
    return module_.empty() || glob_match(module_, function.module);
  }

  void add_function(const FunctionOffset& place) {
    if (kIsReturn && place.offset > 0)
      return error("offset-on-return", "a kretprobe fires when a function returns: it takes no offset");
    for (const std::string& found : request_.kernel.functions(place.function)) {
      const KernelFunction function = split_module(found);
      if (is_in_module(function)) return add(function, place.offset, place.offset == 0);
    }
    // Not in ftrace's list, yet kprobes may reach it.
    if (module_.empty() && request_.kernel.symbol_address(place.function))
      add({place.function, "vmlinux"}, place.offset, false);
  }

  void add_address(const std::string& text) {
    const auto address = parse_int(text);
    if (!address) return;
    if (kIsReturn) return error("address-on-return", "a kretprobe takes the name of a function, not an address");
    if (!request_.config.allow_unsafe)
      return error("needs-unsafe", "a probe at a raw address may crash the kernel: it needs --unsafe");
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
      bound.share = kMulti;
    } else if (request_.kernel.has(kernel::Feature::kPerfLinkCookie)) {
      bound.share = kPerf;
    } else {
      bound.share = fmt::format("{}/{}", kPerf, bound.probe.name);
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

template <bool kIsReturn>
spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kKprobe;
  add_registers(out, request.kernel.arch(), request.types, kIsReturn);
  if (!kIsReturn) add_stack_arguments(out, request.kernel.arch(), request.types);
  out.context_type = context_pointer(request, "pt_regs");
  out.boundary = kIsReturn ? spec::CallBoundary::kReturn : spec::CallBoundary::kEntry;
  if (request.share == kMulti) {
    out.expected_attach_type = kAttachKprobeMulti;
    if (request.kernel.has(kernel::Feature::kKprobeSession)) out.session_attach_type = kAttachKprobeSession;
  }
  if (request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  return out;
}

// ---- Attaching ----------------------------------------------------------------------------------------------------

load::KprobeMulti part_of(const load::KprobeMulti& whole, size_t begin, size_t end) {
  load::KprobeMulti part;
  part.is_return = whole.is_return;
  for (size_t i = begin; i < end; ++i) {
    part.functions.push_back(whole.functions[i]);
    part.cookies.push_back(whole.cookies[i]);
  }
  return part;
}

std::string reason_of(const Error& error) {
  switch (error.code) {
    case EILSEQ: return "that is in the middle of an instruction";
    case ENOENT: return "the kernel has no such function";
    case EADDRNOTAVAIL:
    case ESRCH: return "the kernel does not let it be traced, or has several functions of this name";
    case EINVAL: return "the kernel does not allow a probe there";
    default: return error.message;
  }
}

// Attaches to all functions that it can, and puts those that it cannot into `refused`. With one that it cannot find or
// hook the kernel refuses them all, without saying which: so halves are tried, and theirs. Fails if nothing is left.
Status attach_possible(load::Machine& machine, program::ProgramId program, const load::KprobeMulti& probes,
                       std::vector<load::Machine::SkippedProbe>& refused) {
  const Status status = machine.attach_kprobe_multi(program, probes);
  const size_t count = probes.functions.size();
  if (!status && count == 1) refused.push_back({"kprobe:" + probes.functions[0], reason_of(status.error())});
  if (status || count == 1) return status;
  const Status first = attach_possible(machine, program, part_of(probes, 0, count / 2), refused);
  const Status second = attach_possible(machine, program, part_of(probes, count / 2, count), refused);
  return first ? first : second;
}

Status attach_multi(spec::AttachRequest& request, bool is_return, std::span<const program::ProbeId> probes) {
  load::KprobeMulti multi;
  multi.is_return = is_return;
  for (const program::ProbeId id : probes) {
    multi.functions.push_back(request.program.probes[id].function);
    multi.cookies.push_back(id.index);
  }
  std::vector<load::Machine::SkippedProbe> refused;
  TRY_STATUS(attach_possible(request.machine, request.program_id, multi, refused));
  for (load::Machine::SkippedProbe& each : refused) request.machine.skip(std::move(each));
  return {};
}

Status explain(const Status& status, const program::Probe& probe) {
  if (status) return status;
  const Error& error = status.error();
  return fail(fmt::format("cannot attach to {}: {}", probe.name, reason_of(error)), error.code, error.hint);
}

template <bool kIsReturn>
Status attach(spec::AttachRequest& request) {
  const program::BpfProgram& code = request.program.programs[request.program_id];
  if (code.expected_attach_type == kAttachKprobeSession)
    return attach_multi(request, false, probes_of(request, kKprobe));
  if (code.expected_attach_type == kAttachKprobeMulti) return attach_multi(request, kIsReturn, request.probes);
  Status last;
  std::vector<load::Machine::SkippedProbe> refused;
  for (const program::ProbeId id : request.probes) {
    const program::Probe& probe = request.program.probes[id];
    load::Kprobe kprobe{probe.address == 0 ? probe.function : "", probe.address, probe.offset, kIsReturn};
    const Status status = request.machine.attach_kprobe(request.program_id, kprobe, id.index);
    if (status) continue;
    last = explain(status, probe);
    if (!probe.is_optional) return last;
    refused.push_back({probe.name, reason_of(status.error())});
  }
  if (refused.size() == request.probes.size()) return last;
  for (load::Machine::SkippedProbe& each : refused) request.machine.skip(std::move(each));
  return {};
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  if (!request.kernel.has(kernel::Feature::kKprobe)) return {};
  std::vector<spec::ListedProbe> out;
  const bool has_module = request.parts.size() > 1;
  for (const std::string& found : request.kernel.functions(request.parts.empty() ? "*" : request.parts.back())) {
    const KernelFunction function = split_module(found);
    if (has_module && !glob_match(request.parts[0], function.module)) continue;
    const std::string module = has_module ? function.module + ":" : "";
    out.push_back({fmt::format("{}:{}{}", kRow.name, module, function.name), {}});
  }
  return out;
}

}  // namespace

const spec::Provider kKprobe = {
    .name = "kprobe",
    .aliases = {"k"},
    .doc =
        "Fires when a function of the kernel is entered, or at an instruction inside it. Arguments are arg0, arg1, "
        "...; wildcards leave out what cannot be traced. A raw address needs `--unsafe`.",
    .form = "kprobe:FUNCTION, kprobe:MODULE:FUNCTION, kprobe:FUNCTION+OFFSET or kprobe:0xADDRESS",
    .bind = bind<kKprobe>,
    .context = context<false>,
    .attach = attach<false>,
    .list = list<kKprobe>,
    .example = "kprobe:vfs_read { @[comm] = count(); }"};

const spec::Provider kKretprobe = {.name = "kretprobe",
                                   .aliases = {"kr"},
                                   .doc = "Fires when a function of the kernel returns. What it returns is `retval`.",
                                   .form = "kretprobe:FUNCTION or kretprobe:MODULE:FUNCTION",
                                   .bind = bind<kKretprobe>,
                                   .context = context<true>,
                                   .attach = attach<true>,
                                   .list = list<kKretprobe>,
                                   .example = "kretprobe:vfs_read { @bytes = hist((int64)retval); }"};

}  // namespace espy::probes
