// iter: all objects of a kind that the kernel has at the time: tasks, open files, mappings, sockets, maps.
//
// An iterator is a program for the BTF function bpf_iter_NAME, whose context is struct bpf_iter__NAME. Reading its file
// descriptor runs the program for each object, and once more without one. So there is nothing to attach: espy reads the
// iterator, and the run ends with it.
//
// With a second part, a name below /sys/fs/bpf, the iterator is pinned there. While espy runs, each process that reads
// this file runs the iterator, and espy prints the output; the reader itself gets none.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kIter;

namespace {

constexpr uint32_t kAttachIter = 28;  // BPF_TRACE_ITER
constexpr std::string_view kPinRoot = "/sys/fs/bpf/";
constexpr std::string_view kStructPrefix = "bpf_iter__";
constexpr uint32_t kFirstItemOffset = 8;  // after `meta`, in every context

constexpr std::string_view kControlGroups = "cgroup";
constexpr uint32_t kDescendantsFirst[] = {2};  // bpf_iter_link_info::cgroup.order: BPF_CGROUP_ITER_DESCENDANTS_PRE

struct Iterator {
  std::string name;
  uint32_t btf_id;
};

std::optional<types::FoundMember> find_object(kernel::Kernel& kernel, types::Types& types, std::string_view iterator,
                                              std::string_view member) {
  const types::TypeId layout = kernel.find_struct(types, std::string(kStructPrefix) + std::string(iterator));
  if (!layout.valid()) return std::nullopt;
  kernel.complete(types, layout);
  return types::find_member(types, layout, member);
}

// Whether it walks the elements of one map, which its link has to name; scripts cannot. Its context has that map and
// each element.
bool needs_map(kernel::Kernel& kernel, types::Types& types, std::string_view iterator) {
  const auto has = [&](std::string_view member) { return find_object(kernel, types, iterator, member).has_value(); };
  return has("map") && (has("key") || has("value"));
}

// Those that can be attached, unless the name is given.
std::vector<Iterator> iterators(kernel::Kernel& kernel, types::Types& types, std::string_view glob) {
  std::vector<Iterator> out;
  for (const std::string& found : kernel.struct_names(std::string(kStructPrefix) + std::string(glob))) {
    const size_t prefix = found.find(kStructPrefix);
    std::string name = found.substr(prefix + kStructPrefix.size());
    const auto id = kernel.kfunc_id("bpf_iter_" + name);
    if (id && (name == glob || !needs_map(kernel, types, name))) out.push_back({std::move(name), *id});
  }
  return out;
}

std::span<const uint32_t> target_of(const program::Probe& probe) {
  if (probe.function == kControlGroups) return kDescendantsFirst;
  return {};
}

std::string pin_path(const std::string& name) { return name.starts_with('/') ? name : std::string(kPinRoot) + name; }

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (request.parts.empty() || request.parts.size() > 2) return report_wrong_form(request, kIter.form, "iter:task");
  const std::string pin = request.parts.size() == 2 ? pin_path(request.parts[1]) : "";
  if (!pin.empty() && !pin.starts_with(kPinRoot)) {
    request.diagnostics.error("bad-pin", request.point.span, "an iterator can be pinned only below /sys/fs/bpf");
    return {};
  }
  if (!request.kernel.has_btf())
    return report_unavailable(request, "no-btf",
                              "this kernel has no type information (CONFIG_DEBUG_INFO_BTF), which iterators need");
  std::vector<spec::BoundProbe> out;
  for (const auto& [name, btf_id] : iterators(request.kernel, request.types, request.parts[0])) {
    if (needs_map(request.kernel, request.types, name))
      return report_unavailable(request, "needs-map",
                                fmt::format("iter:{} walks the elements of one map, which a script cannot name", name));
    spec::BoundProbe bound;
    bound.probe.provider = kIter.name;
    bound.probe.function = name;
    bound.probe.number = btf_id;
    bound.probe.target = pin;
    bound.probe.name = full_name(kIter.name, request.parts);
    if (has_wildcard(request.parts[0])) bound.probe.name = "iter:" + name;
    bound.probe.span = request.point.span;
    bound.share.place = bound.probe.name;
    out.push_back(std::move(bound));
  }
  return out;
}

bool is_task(const types::Types& types, types::TypeId id) {
  const types::Type& type = types[id];
  return type.kind == types::Kind::kPointer && types[type.element].name == "task_struct";
}

spec::ProbeContext context(spec::ContextRequest& request) {
  const program::Probe& probe = request.probes.front();
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kIter;
  out.expected_attach_type = kAttachIter;
  out.attach_btf_id = static_cast<uint32_t>(probe.number);
  out.is_preemptible = true;
  out.after_exit = spec::AfterExit::kUntilEnd;
  out.is_limited_to_pid = false;  // it runs in the process that reads the iterator
  out.not_null = spec::Recipe{spec::Recipe::Kind::kContext, kFirstItemOffset, 0, 8, false};
  out.context_struct = std::string(kStructPrefix) + probe.function;
  const auto task = find_object(request.kernel, request.types, probe.function, "task");
  if (task && is_task(request.types, task->type))
    out.task = spec::Recipe{spec::Recipe::Kind::kContext, static_cast<uint32_t>(task->offset_bits / 8), 0, 8, false};
  return out;
}

Status attach(spec::AttachRequest& request) {
  const program::Probe& probe = request.program.probes[request.probes.front()];
  return probe.target.empty() ? request.machine.start_iterator(request.program_id, target_of(probe))
                              : request.machine.pin_iterator(request.program_id, target_of(probe), probe.target);
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  std::vector<spec::ListedProbe> out;
  for (const auto& [name, btf_id] :
       iterators(request.kernel, request.types, request.parts.empty() ? "*" : request.parts[0])) {
    spec::ListedProbe listed{"iter:" + name, {}};
    if (request.verbose) {
      const types::TypeId layout = request.kernel.find_struct(request.types, std::string(kStructPrefix) + name);
      request.kernel.complete(request.types, layout);
      for (const types::Member& part : request.types[layout].members) {
        const auto field =
            part.name.empty() ? request.types[part.type].members.front() : part;  // __bpf_md_ptr: a union
        if (field.name != "meta") listed.arguments.push_back(c_spelling(request.types, field.type) + " " + field.name);
      }
    }
    out.push_back(std::move(listed));
  }
  return out;
}

}  // namespace

extern const spec::Provider kIter = {
    .name = "iter",
    .aliases = {"it"},
    .doc =
        "Runs once for each object of a kind that the kernel has at the time: `task`, `task_file`, `task_vma`, "
        "`bpf_map`, `tcp`, ... The object is in `ctx`: `ctx.task`. The run ends after the last object. With PIN, the "
        "iterator is pinned below /sys/fs/bpf and runs when this file is read.",
    .form = "iter:KIND or iter:KIND:PIN",
    .bind = bind,
    .context = context,
    .attach = attach,
    .list = list,
    .example = "iter:task { printf(\"%d %s\\n\", ctx.task.pid, ctx.task.comm); }"};

}  // namespace espy::probes
