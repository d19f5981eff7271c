// rawtracepoint: a tracepoint with its own arguments, without the record that the kernel makes of them for tracepoint
// probes.
#include <fmt/format.h>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/common.h"

namespace espy::probes {

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

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
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
    const bool shares = !request.uses_args && !is_at_all_system_calls(event) &&
                        request.kernel.has(kernel::Feature::kRawTracepointCookie);
    bound.share.place = shares ? "" : event;
    out.push_back(std::move(bound));
  }
  return out;
}

spec::ProbeContext context(spec::ContextRequest& request) {
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

Status attach(spec::AttachRequest& request) {
  return attach_each_probe(request, [](const spec::AttachRequest& each, program::ProbeId id) {
    const uint64_t cookie = each.probes.size() > 1 ? id.index : 0;
    return each.machine.attach_raw_tracepoint(each.program_id, each.program.probes[id].function, cookie);
  });
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
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
    .bind = bind,
    .context = context,
    .attach = attach,
    .list = list,
    .example = "rawtracepoint:sched_switch { @[args.next.comm] = count(); }"};

}  // namespace espy::probes
