// fentry and fexit: kernel functions, with their arguments by name and type.
//
// BTF describes the functions of the kernel and of its modules. A BPF trampoline passes the arguments to the program as
// an array of words, followed, at the exit, by the return value. This is cheaper than a kprobe and needs no registers.
// Pointers among the arguments are read as any other kernel memory.
//
// Limits. The verifier checks a program against the prototype of its function, so a wildcard costs a program per
// function. Functions that a trampoline does not support are excluded beforehand: those that ftrace does not list,
// variadic functions, those with more than twelve words of arguments or a struct by value of more than two words, and
// on kernels that lack `struct_arguments` or `stack_arguments` any struct, or more words than registers.
//
// BPF programs can be probed as well, by fentry:bpf:NAME or fentry:bpf:ID:NAME. They are identified by their own BTF,
// and their arguments are not available.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kernel/functions.h"
#include "load/linux.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kFexit;

namespace {

constexpr uint32_t kAttachFentry = 24;  // BPF_TRACE_FENTRY
constexpr uint32_t kAttachFexit = 25;   // BPF_TRACE_FEXIT
constexpr uint32_t kWordBytes = 8;
constexpr std::string_view kVmlinux = "vmlinux";
constexpr std::string_view kPrograms = "bpf";
// What the guard against recursion calls, which programs have on kernels without one.
constexpr std::string_view kCalledByGuard = "bpf_get_smp_processor_id";

template <const spec::Provider& kRow>
spec::BoundProbe make_probe(const spec::BindRequest& request, const kernel::FunctionPrototype& function) {
  spec::BoundProbe bound;
  bound.probe.provider = kRow.name;
  bound.probe.target = function.module;
  bound.probe.function = function.name;
  bound.probe.number = function.btf_id;
  bound.probe.name = fmt::format("{}:{}:{}", kRow.name, function.module, function.name);
  bound.probe.span = request.point.span;
  bound.share.place = bound.probe.name;
  return bound;
}

// Returns the loaded BPF programs that match `bpf:NAME` or `bpf:ID:NAME`.
std::vector<load::LoadedFunction> matching_programs(std::span<const std::string> parts) {
  const std::string name = parts.empty() ? "*" : parts.back();
  const std::string id = parts.size() > 2 ? parts[1] : "*";
  std::vector<load::LoadedFunction> out;
  for (load::LoadedFunction& function : load::loaded_functions())
    if (glob_match(name, function.name) && glob_match(id, std::to_string(function.program_id)))
      out.push_back(std::move(function));
  return out;
}

template <const spec::Provider& kRow>
std::string name_of(const load::LoadedFunction& function) {
  return fmt::format("{}:{}:{}:{}", kRow.name, kPrograms, function.program_id, function.name);
}

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind_programs(spec::BindRequest& request) {
  std::vector<spec::BoundProbe> out;
  for (const load::LoadedFunction& function : matching_programs(request.parts)) {
    spec::BoundProbe bound;
    bound.probe.provider = kRow.name;
    bound.probe.target = kPrograms;
    bound.probe.function = function.name;
    bound.probe.number = function.btf_id;
    bound.probe.address = function.program_id;
    bound.probe.name = name_of<kRow>(function);
    bound.probe.span = request.point.span;
    bound.share.place = bound.probe.name;
    out.push_back(std::move(bound));
  }
  return out;
}

// If the kernel has the function, but no type information of it, says so.
template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> report_untyped(spec::BindRequest& request, const std::string& module,
                                             const std::string& name) {
  for (const std::string& found : request.kernel.functions(name)) {
    const KernelFunction function = split_module(found);
    if (!module.empty() && function.module != module) continue;
    const bool is_in_kernel = function.module == kVmlinux;
    const std::string place = is_in_kernel ? "" : fmt::format(" of the module {}", function.module);
    const std::string release =
        is_in_kernel ? "" : "modules have it since Linux 5.11 (CONFIG_DEBUG_INFO_BTF_MODULES); ";
    return report_unavailable(
        request, "no-fentry",
        fmt::format("the kernel has no type information of `{}`{}, which {} needs", name, place, kRow.name),
        fmt::format("{}{} does without", release, &kRow == &kFexit ? "kretprobe" : "kprobe"));
  }
  return {};
}

// BTF also describes functions that a trampoline does not find: those that ftrace does not list, and those of which the
// compiler has left code under other names only. The kernel says so when the program is loaded.
template <const spec::Provider& kRow>
void foretell(spec::BindRequest& request, const kernel::FunctionPrototype& function) {
  const std::string name = fmt::format("{}:{}", kRow.name, function.name);
  if (!request.kernel.knows(kernel::Fact::kTraceableFunctions))
    return report_not_known(request.diagnostics, request, fmt::format("whether that kernel allows `{}`", name));
  for (const std::string& found : request.kernel.functions(function.name))
    if (split_module(found).module == function.module) return;
  const std::string parts[] = {function.name};
  spec::ListRequest similar{parts, false, request.kernel, request.types, request.symbols, request.config};
  similar.provider = &kRow;
  request.diagnostics.error(
      "no-fentry", request.point.span,
      fmt::format("`{}` has no place in that kernel where a trampoline could attach", function.name),
      tell_similar_functions(similar));
}

// A trampoline attaches to the first function that has the name.
void warn_of_shared_names(spec::BindRequest& request, const std::string& glob,
                          const std::vector<spec::BoundProbe>& bound) {
  constexpr size_t kMostNames = 8;
  std::map<std::string, size_t> counts;
  for (const std::string& each : request.kernel.functions(glob)) ++counts[each];
  std::string names;
  size_t found = 0;
  for (const spec::BoundProbe& each : bound) {
    const program::Probe& probe = each.probe;
    const bool is_of_kernel = probe.target == kVmlinux;
    const size_t count = counts[is_of_kernel ? probe.function : fmt::format("{} [{}]", probe.function, probe.target)];
    if (count < 2 || ++found > kMostNames) continue;
    names += fmt::format("{}{} functions are named `{}`", names.empty() ? "" : ", ", count, probe.function);
  }
  if (found == 0) return;
  if (found > kMostNames) names += ", ...";
  // --strict refuses it (run/run_script.cc).
  request.diagnostics.warning(
      "partly-probed", request.point.span,
      fmt::format("not all calls are seen: {}, and fentry and fexit attach to one of them", names),
      request.kernel.has(kernel::Feature::kKprobe) ? "kprobe and kretprobe attach to all" : "");
}

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  const bool is_of_programs = request.parts.size() >= 2 && request.parts[0] == kPrograms;
  if (request.parts.empty() || request.parts.size() > (is_of_programs ? 3 : 2))
    return report_wrong_form(request, kRow.form, "fentry:vfs_read");
  if (!request.kernel.has_btf())
    return report_unavailable(
        request, "no-fentry",
        "this kernel has no type information (CONFIG_DEBUG_INFO_BTF), which fentry and fexit need");
  if (!request.kernel.has(kernel::Feature::kFentry)) {
    const bool has_kprobes = request.kernel.has(kernel::Feature::kKprobe);
    return report_unavailable(request, "no-fentry", "this kernel does not support fentry and fexit",
                              has_kprobes ? "use kprobe and kretprobe" : "");
  }
  if (is_of_programs) return bind_programs<kRow>(request);
  if (request.parts.back() == kCalledByGuard && !request.kernel.has(kernel::Feature::kRecursionGuard))
    return report_unavailable(request, "no-fentry",
                              "before Linux 5.12 an fentry program of this function would call itself",
                              "use kprobe and kretprobe");
  std::vector<spec::BoundProbe> out;
  const std::string module = request.parts.size() == 2 ? request.parts[0] : "";
  const std::string& name = request.parts.back();
  constexpr bool kIsExit = &kRow == &kFexit;
  if (const auto why = why_refused(request, name, kIsExit, false)) {
    report_refused(request, name, *why);
    return {};
  }
  if (kIsExit && kernel::never_returns(name))
    return report_unavailable(request, "no-fentry", fmt::format("`{}` never returns", name),
                              fmt::format("use fentry:{}", name));
  if (has_wildcard(name) || has_wildcard(module)) {
    for (const auto& function : request.kernel.find_functions(nullptr, name, module.empty() ? "*" : module))
      if (!why_refused(request, function.name, kIsExit, false) &&
          (request.config.allow_unsafe || !kernel::is_left_out_of_wildcard(function.name, name)) &&
          !(kIsExit && kernel::never_returns(function.name)) &&
          (function.name != kCalledByGuard || request.kernel.has(kernel::Feature::kRecursionGuard)))
        out.push_back(make_probe<kRow>(request, function));
  } else if (const auto function = request.kernel.find_function(request.types, name, module)) {
    if (const auto why = request.kernel.why_not_passable(*function))
      return report_unavailable(request, "no-fentry",
                                fmt::format("`{}` {}, which {} cannot pass on this kernel", name, *why, kRow.name),
                                fmt::format("{}:{} does without", kIsExit ? "kretprobe" : "kprobe", name));
    if (request.is_foretold()) foretell<kRow>(request, *function);
    out.push_back(make_probe<kRow>(request, *function));
  } else {
    return report_untyped<kRow>(request, module, name);
  }
  if (!request.is_listing()) warn_of_shared_names(request, name, out);
  return out;
}

// Whether a program may load a pointer of this type from its arguments: to a struct, to void, and since Linux 5.17 to
// an integer (btf_ctx_access in kernel/bpf/btf.c).
bool is_loadable(kernel::Kernel& kernel, const types::Types& types, const types::Type& pointer) {
  if (!pointer.element) return true;
  const types::Type& target = types[pointer.element];
  if (target.kind == types::Kind::kStruct || target.kind == types::Kind::kVoid) return true;
  return types::is_integer(target) && kernel.has(kernel::Feature::kIntPointerArguments);
}

// Returns the field of a parameter in the trampoline's array: the low bytes of a word, or one or two words of a struct.
spec::ContextField word_field(kernel::Kernel& kernel, const types::Types& types, const std::string& name,
                              types::TypeId type, uint32_t offset_bytes) {
  using Recipe = spec::Recipe;
  const types::Type& layout = types[type];
  Recipe recipe{Recipe::Kind::kContext, offset_bytes, 0, kWordBytes, layout.is_signed};
  if (types::is_by_reference(layout)) {
    recipe.kind = Recipe::Kind::kContextAddress;
  } else if (layout.size_bytes > 0 && layout.size_bytes < kWordBytes) {
    recipe.size_bytes = static_cast<uint8_t>(layout.size_bytes);
  } else if (layout.kind == types::Kind::kPointer && !is_loadable(kernel, types, layout)) {
    recipe.kind = Recipe::Kind::kContextCopy;
  }
  return {name, type, recipe};
}

template <bool kIsExit>
spec::ProbeContext context(spec::ContextRequest& request) {
  const program::Probe& probe = request.probes.front();
  spec::ProbeContext out;
  out.kind = kIsExit ? program::ProgramKind::kFexit : program::ProgramKind::kFentry;
  out.expected_attach_type = kIsExit ? kAttachFexit : kAttachFentry;
  out.attach_btf_id = static_cast<uint32_t>(probe.number);
  out.is_last_attached_first = true;  // bpf_trampoline_link_prog() in kernel/bpf/trampoline.c
  if (probe.target == kPrograms) {
    out.attach_program = static_cast<uint32_t>(probe.address);
    return out;
  }
  if (probe.target != kVmlinux) out.attach_btf_module = probe.target;
  out.is_preemptible = true;  // it runs in the context of the caller of the function
  out.part_of_call = out.boundary = kIsExit ? spec::CallBoundary::kReturn : spec::CallBoundary::kEntry;
  const auto prototype = request.kernel.find_function(request.types, probe.function, probe.target);
  if (!prototype) return out;
  uint32_t end = 0;
  for (const types::Member& parameter : prototype->parameters) {
    request.kernel.complete(request.types, parameter.type);
    out.args.push_back(
        word_field(request.kernel, request.types, parameter.name, parameter.type, parameter.offset_bytes()));
    const uint32_t size = std::max(request.types[parameter.type].size_bytes, 1u);
    end = parameter.offset_bytes() + (size + kWordBytes - 1) / kWordBytes * kWordBytes;
  }
  if (kIsExit && request.types[prototype->result].kind != types::Kind::kVoid)
    out.retval = word_field(request.kernel, request.types, "retval", prototype->result, end);
  return out;
}

Status attach(spec::AttachRequest& request) {
  return attach_each_probe(request, [](const spec::AttachRequest& each, program::ProbeId) {
    return each.machine.attach_tracing(each.program_id, 0);
  });
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  if (!request.kernel.has(kernel::Feature::kFentry)) return {};
  const std::string module = request.parts.size() > 1 ? request.parts[0] : "*";
  const std::string name = request.parts.empty() ? "*" : request.parts.back();
  std::vector<spec::ListedProbe> out;
  for (const auto& function : request.kernel.find_functions(request.verbose ? &request.types : nullptr, name, module)) {
    spec::ListedProbe listed{fmt::format("{}:{}:{}", kRow.name, function.module, function.name), {}};
    if (request.verbose) listed.arguments = list_parameters(request, function);
    if (request.verbose && &kRow == &kFexit)
      for (std::string& result : list_result(request, function)) listed.arguments.push_back(std::move(result));
    out.push_back(std::move(listed));
  }
  if (request.parts.size() < 2 || glob_match(request.parts[0], kPrograms))
    for (const load::LoadedFunction& function : matching_programs(request.parts))
      out.push_back({name_of<kRow>(function), {}});
  return out;
}

}  // namespace

extern const spec::Provider kFentry = {
    .name = "fentry",
    .aliases = {"f", "kfunc"},
    .doc = "Fires at the entry of a kernel function, with its typed arguments as `args.NAME`. Needs BTF.",
    .form = "fentry:FUNCTION, fentry:MODULE:FUNCTION or fentry:bpf:PROGRAM",
    .bind = bind<kFentry>,
    .context = context<false>,
    .attach = attach,
    .list = list<kFentry>,
    .tell_similar = tell_similar_functions,
    .return_provider = &kFexit,
    .example = "fentry:vfs_open { printf(\"%s\\n\", str(args.path.dentry.d_name.name)); }"};

extern const spec::Provider kFexit = {
    .name = "fexit",
    .aliases = {"fr", "kretfunc"},
    .doc =
        "Fires at the return of a kernel function, with its typed arguments as `args.NAME` "
        "and its return value as `retval`. Needs BTF.",
    .form = "fexit:FUNCTION, fexit:MODULE:FUNCTION or fexit:bpf:PROGRAM",
    .bind = bind<kFexit>,
    .context = context<true>,
    .attach = attach,
    .list = list<kFexit>,
    .tell_similar = tell_similar_functions,
    .example = "fexit:vfs_read { @[args.file.f_path.dentry.d_name.name] = sum(retval); }"};

}  // namespace espy::probes
