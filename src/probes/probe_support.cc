#include "probes/probe_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"
#include "kernel/functions.h"
#include "load/machine.h"
#include "symbols/debug_info.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

struct Unit {
  std::string_view name;
  uint64_t ns;
};
constexpr Unit kUnits[] = {{"ns", 1},
                           {"us", 1000},
                           {"ms", 1'000'000},
                           {"s", kNsPerSecond},
                           {"m", 60 * kNsPerSecond},
                           {"h", 3600 * kNsPerSecond},
                           {"d", 24 * 3600 * kNsPerSecond}};

std::optional<uint64_t> unit_ns(std::string_view name) {
  for (const Unit& unit : kUnits)
    if (unit.name == name) return unit.ns;
  return std::nullopt;
}

std::optional<Rate> rate_of(uint64_t count, uint64_t unit) {
  uint64_t period_ns = 0;
  if (__builtin_mul_overflow(count, unit, &period_ns)) return std::nullopt;
  return Rate{period_ns, 0};
}

std::optional<Rate> parse_duration(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789_");
  if (digits == std::string_view::npos || text[digits] == 'e' || text[digits] == 'E') {
    const auto ns = parse_count(text);
    return ns ? std::optional(Rate{*ns, 0}) : std::nullopt;
  }
  const auto number = parse_count(text.substr(0, digits));
  const auto unit = unit_ns(text.substr(digits));
  if (!number || !unit) return std::nullopt;
  return rate_of(*number, *unit);
}

}  // namespace

std::string full_name(std::string_view provider, std::span<const std::string> parts) {
  std::string out(provider);
  for (const std::string& part : parts) out += ":" + part;
  return out;
}

std::vector<spec::BoundProbe> report_wrong_form(spec::BindRequest& request, std::string_view form,
                                                std::string_view example) {
  request.diagnostics.error("bad-attach-point", request.point.span,
                            fmt::format("wrong form of attach point: expected {}", form),
                            fmt::format("for example `{}`", example));
  return {};
}

std::vector<spec::BoundProbe> report_unavailable(spec::BindRequest& request, std::string_view id, std::string message,
                                                 std::string hint) {
  request.missing.error(id, request.point.span, std::move(message), std::move(hint));
  return {};
}

bool report_shared_frames(spec::BindRequest& request) {
  using kernel::Feature;
  if (!request.kernel.has(Feature::kPrivateStack) || request.kernel.has(Feature::kTailCallStack)) return false;
  report_unavailable(request, "kernel-lacks",
                     "this kernel runs the programs of user probes on a stack of the CPU, where threads overwrite one "
                     "another's variables");
  return true;
}

std::optional<std::string> why_refused(const spec::BindRequest& request, std::string_view function, bool is_return,
                                       bool is_kprobe) {
  if (request.config.allow_unsafe) return std::nullopt;
  if (const auto why = kernel::why_dangerous(function, is_return)) return std::string(*why);
  if (is_kprobe && request.kernel.is_kprobe_forbidden(function))
    return "the kernel's own list of functions that must not be probed has it";
  return std::nullopt;
}

void report_not_known(source::Diagnostics& diagnostics, const spec::BindRequest& request, std::string_view what) {
  diagnostics.error(kNotKnown, request.point.span,
                    fmt::format("{} is not known: the snapshot was taken without the right to read it", what),
                    "`sudo espy snapshot` on that machine takes a complete one");
}

void report_refused(spec::BindRequest& request, std::string_view function, const std::string& why) {
  report_unavailable(request, "dangerous-function",
                     fmt::format("a probe of `{}` can make the machine hang: {}", function, why),
                     "--unsafe tries it in spite of that");
}

std::optional<uint64_t> parse_count(std::string_view given) {
  // As in numbers of the language: 1_000.
  std::string text(given);
  if (text.starts_with('_') || text.ends_with('_')) return std::nullopt;
  std::erase(text, '_');
  const size_t exponent_at = text.starts_with("0") ? text.npos : text.find_first_of("eE");
  const auto number = parse_int(std::string_view(text).substr(0, exponent_at));
  if (!number || *number <= 0) return std::nullopt;
  auto out = static_cast<uint64_t>(*number);
  if (exponent_at == text.npos) return out;
  const auto exponent = parse_int(std::string_view(text).substr(exponent_at + 1));
  if (!exponent || *exponent < 0) return std::nullopt;
  for (int64_t i = 0; i < *exponent; ++i)
    if (__builtin_mul_overflow(out, 10, &out)) return std::nullopt;
  return out;
}

namespace {

// Whether other programs serve probes of the same attach point.
bool has_others(const spec::AttachRequest& request, const program::Probe& probe) {
  const auto& probes = request.program.probes;
  return std::ranges::any_of(probes.ids(), [&](program::ProbeId id) {
    return probes[id].program != probe.program && probes[id].span == probe.span && probes[id].is_optional;
  });
}

}  // namespace

Status leave_out(const spec::AttachRequest& request, const std::vector<RefusedProbe>& refused) {
  const bool may_miss = request.config.missing_probes != spec::MissingProbes::kError;
  const bool is_whole_program = refused.size() == request.probes.size();
  for (const auto& [id, error] : refused) {
    const program::Probe& probe = request.program.probes[id];
    const bool is_all = is_whole_program && !has_others(request, probe);
    if (error.code == ECANCELED || (!may_miss && (is_all || !probe.is_optional)))
      return fail(fmt::format("cannot attach to {}: {}", probe.name, error.message), error.code, error.hint);
  }
  for (const auto& [id, error] : refused) {
    const program::Probe& probe = request.program.probes[id];
    request.machine.skip({probe.name, error.message, !probe.is_optional});
  }
  return {};
}

std::optional<Rate> parse_rate(std::span<const std::string> parts) {
  if (parts.size() == 1) return parse_duration(parts[0]);
  if (parts.size() != 2) return std::nullopt;
  const auto count = parse_count(parts[1]);
  if (!count) return std::nullopt;
  if (parts[0] == "hz")
    return *count > kNsPerSecond ? std::nullopt : std::optional(Rate{kNsPerSecond / *count, *count});
  const auto unit = unit_ns(parts[0]);
  return unit ? rate_of(*count, *unit) : std::nullopt;
}

Status attach_each_probe(const spec::AttachRequest& request,
                         const std::function<Status(const spec::AttachRequest&, program::ProbeId)>& attach_one) {
  std::vector<RefusedProbe> refused;
  for (const program::ProbeId id : request.probes) {
    const Status status = attach_one(request, id);
    if (!status) refused.push_back({id, status.error()});
    if (!status && status.error().code == ECANCELED) break;
  }
  return leave_out(request, refused);
}

spec::ProbeContext perf_event_context(spec::ContextRequest& request) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kPerfEvent;
  // struct bpf_perf_event_data starts with the registers of the interrupted code.
  add_registers(out, request.kernel.arch(), request.types, false);
  out.arguments.clear();
  // The struct does not exist in memory: the verifier rewrites each load of a member of the context.
  out.context_struct = "bpf_perf_event_data";
  out.context_space = types::AddressSpace::kBpf;
  return out;
}

spec::ProbeContext once_context(spec::ContextRequest&) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kRawTracepoint;
  out.is_limited_to_pid = false;
  out.after_exit = spec::AfterExit::kAlways;
  return out;
}

void add_registers(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types, bool is_return) {
  context.registers_offset_bytes = 0;
  const auto field = [&](std::string name, uint32_t offset) {
    return spec::ContextField{std::move(name), types.uint64(),
                              spec::Recipe{spec::Recipe::Kind::kContext, offset, 0, 8, false}};
  };
  if (is_return) {
    context.retval = field("retval", arch.return_value_offset);
    return;
  }
  for (size_t i = 0; i < arch.argument_offsets.size(); ++i)
    context.arguments.push_back(field(fmt::format("arg{}", i), arch.argument_offsets[i]));
}

void add_stack_arguments(spec::ProbeContext& context, const kernel::Arch& arch, types::Types& types) {
  constexpr uint32_t kCount = 10;
  constexpr uint32_t kWordBytes = 8;
  const bool is_user = context.pointers == types::AddressSpace::kUser;
  for (uint32_t i = 0; i < kCount; ++i) {
    spec::Recipe recipe{is_user ? spec::Recipe::Kind::kUserStackWord : spec::Recipe::Kind::kBehindPointer,
                        arch.stack_pointer_offset, arch.stack_argument_start_bytes + i * kWordBytes, 8, false};
    context.arguments.push_back({fmt::format("sarg{}", i), types.uint64(), recipe});
  }
}

// At the entry, the stack pointer is the address of the return address; the return instruction removes it.
void add_frame(spec::ProbeContext& context, const kernel::Arch& arch, bool is_return) {
  const auto pushed_bytes = static_cast<int32_t>(arch.return_address_bytes);
  context.part_of_call = context.boundary = is_return ? spec::CallBoundary::kReturn : spec::CallBoundary::kEntry;
  context.frame = spec::Frame{arch.stack_pointer_offset, is_return ? -pushed_bytes : 0};
  if (is_return) return;
  using Kind = spec::Recipe::Kind;
  context.return_address = pushed_bytes > 0 ? spec::Recipe{Kind::kUserStackWord, arch.stack_pointer_offset, 0, 8, false}
                                            : spec::Recipe{Kind::kContext, arch.link_register_offset, 0, 8, false};
}

std::string c_spelling(const types::Types& types, types::TypeId id) {
  if (!id.valid()) return "void";
  const types::Type& type = types[id];
  switch (type.kind) {
    case types::Kind::kInt: {
      if (type.char_like) return "char";
      constexpr std::string_view kNames[] = {"char", "short", "int", "long"};  // of 1, 2, 4, 8 bytes
      const std::string name(kNames[std::min(std::countr_zero(std::max(type.size_bytes, 1U)), 3)]);
      return type.is_signed ? (name == "char" ? "signed char" : name) : "unsigned " + name;
    }
    case types::Kind::kPointer: {
      const std::string to = c_spelling(types, type.element);
      return to + (to.ends_with('*') ? "*" : " *");
    }
    case types::Kind::kArray: return fmt::format("{}[{}]", c_spelling(types, type.element), type.count);
    default: return types::to_string(types, id);
  }
}

std::vector<std::string> list_parameters(spec::ListRequest& request, const kernel::FunctionPrototype& function) {
  const auto c_types = request.kernel.c_types(function);
  std::vector<std::string> out;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const types::Member& parameter = function.parameters[i];
    const bool is_known = c_types && i < c_types->parameters.size();
    out.push_back((is_known ? c_types->parameters[i] : c_spelling(request.types, parameter.type)) + " " +
                  parameter.name);
  }
  return out;
}

std::vector<std::string> list_result(spec::ListRequest& request, const kernel::FunctionPrototype& function) {
  if (request.types[function.result].kind == types::Kind::kVoid) return {};
  const auto c_types = request.kernel.c_types(function);
  return {(c_types ? c_types->result : c_spelling(request.types, function.result)) + " retval"};
}

std::vector<program::ProbeId> probes_of(const spec::AttachRequest& request, const spec::Provider& provider) {
  std::vector<program::ProbeId> out;
  for (const program::ProbeId id : request.probes)
    if (request.program.probes[id].provider == provider.name) out.push_back(id);
  if (out.empty()) out.assign(request.probes.begin(), request.probes.end());
  return out;
}

// Both boundaries have the same functions in the same order (lower/lower.cc).
std::vector<RefusedProbe> with_returns(const spec::AttachRequest& request, std::span<const program::ProbeId> entries,
                                       std::vector<RefusedProbe> refused) {
  std::vector<program::ProbeId> returns;
  std::ranges::set_difference(request.probes, entries, std::back_inserter(returns));
  const size_t count = returns.size() == entries.size() ? refused.size() : 0;
  for (size_t i = 0; i < count; ++i) {
    const auto entry = std::ranges::find(entries, refused[i].id);
    refused.push_back({returns[static_cast<size_t>(entry - entries.begin())], refused[i].error});
  }
  return refused;
}

Status attach_to_threads(const spec::AttachRequest& request, program::ProbeId id, load::PerfEvent event, uint32_t pid) {
  event.for_new_threads = true;
  Status out = fail(fmt::format("process {} has ended", pid), ESRCH);
  for (const uint32_t thread : numbered_entries(fmt::format("/proc/{}/task", pid))) {
    event.pid = static_cast<int32_t>(thread);
    Status status = request.machine.attach_perf_event(request.program_id, event, id.index);
    if (!status && status.error().code == ESRCH) continue;
    if (!status) return status;
    out = {};
  }
  return out;
}

Status attach_to_traced_threads(const spec::AttachRequest& request, program::ProbeId id, const load::PerfEvent& event,
                                std::span<const spec::TracedProcess> processes) {
  Status ended;
  bool is_one_attached = false;
  for (const spec::TracedProcess& process : processes) {
    const Status status = attach_to_threads(request, id, event, process.pid);
    if (!status && status.error().code != ESRCH) return status;
    if (status) is_one_attached = true;
    if (!status) ended = status;
  }
  return is_one_attached ? Status() : ended;
}

bool is_at_all_system_calls(std::string_view raw_tracepoint) {
  return raw_tracepoint == "sys_enter" || raw_tracepoint == "sys_exit";
}

FunctionOffset split_offset(const std::string& text) {
  const size_t plus = text.rfind('+');
  if (plus == std::string::npos) return {text, 0};
  const auto offset = parse_int(std::string_view(text).substr(plus + 1));
  if (!offset || *offset < 0) return {text, 0};
  return {text.substr(0, plus), static_cast<uint64_t>(*offset)};
}

KernelFunction split_module(std::string_view listed) {
  const size_t bracket = listed.find(" [");
  if (bracket == std::string_view::npos) return {std::string(listed), "vmlinux"};
  const std::string_view module = listed.substr(bracket + 2);
  return {std::string(listed.substr(0, bracket)), std::string(module.substr(0, module.find(']')))};
}

namespace {

symbols::DebugInfo::TypeCategory searched(spec::ProgramTypeRequest::Category category) {
  using Category = spec::ProgramTypeRequest::Category;
  using symbols::DebugInfo;
  switch (category) {
    case Category::kStruct: return DebugInfo::TypeCategory::kStruct;
    case Category::kEnum: return DebugInfo::TypeCategory::kEnum;
    case Category::kAny: break;
    case Category::kEnumerator: return DebugInfo::TypeCategory::kEnumerator;
  }
  return DebugInfo::TypeCategory::kAny;
}

}  // namespace

spec::ProgramType find_program_type(spec::ProgramTypeRequest& request) {
  if (request.symbols == nullptr) return {};
  const auto file = request.symbols->elf_file(request.probe.target);
  if (!file) return {.problem = file.error().message};
  if (!(*file)->is_64bit()) return {.problem = "pointers have 4 bytes in 32-bit programs, and 8 in scripts"};
  const auto debug = (*file)->debug_info();
  if (!debug) return {.problem = debug.error().message};
  const uint64_t address = (*file)->address_of_offset(request.probe.address).value_or(0);
  auto found = (*debug)->find_type(request.types, searched(request.category), request.name, address);
  return {found.type.value_or(types::TypeId{}), found.value, std::move(found.candidates), {}};
}

namespace {

constexpr size_t kMostNames = 4;

// What a compiler or linker appends to the name of a function, and what the code under that name is.
struct Suffix {
  std::string_view text;
  std::string_view meaning;
};
constexpr Suffix kSuffixes[] = {
    {".isra.", "what the compiler made of it, with other arguments where it saw fit"},
    {".constprop.", "a copy of it for calls with some constant arguments, which are not passed"},
    {".part.", "the part of it that is not inlined"},
    {".llvm.", "it, renamed for the linker"},
    {".cold", "the part of it that runs rarely"},
};

const Suffix* suffix_of(std::string_view name, std::string_view function) {
  if (!name.starts_with(function)) return nullptr;
  const std::string_view rest = name.substr(function.size());
  const auto found = std::ranges::find_if(kSuffixes, [&](const Suffix& each) { return rest.starts_with(each.text); });
  return found == std::end(kSuffixes) ? nullptr : found;
}

// The name without what distinguishes a function from the ones that it calls or that call it: leading underscores, the
// layer (vfs_, ksys_, do_), the prefixes of system calls, and the suffix of functions whose allocations are profiled.
std::string_view stem_of(std::string_view name) {
  const auto without_underscores = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('_'), text.size()));
  };
  constexpr std::string_view kProfiled = "_noprof", kCall = "_sys_", kOldCall = "sys_";
  constexpr size_t kLongestCallPrefix = 6;  // of "arm64_sys_"
  name = without_underscores(name);
  if (name.ends_with(kProfiled)) name.remove_suffix(kProfiled.size());
  if (name.starts_with(kOldCall)) return name.substr(kOldCall.size());
  if (const size_t at = name.find(kCall); at <= kLongestCallPrefix) return name.substr(at + kCall.size());
  for (const std::string_view layer : {"do_", "vfs_", "ksys_", "kernel_"})
    if (name.starts_with(layer)) return without_underscores(name.substr(layer.size()));
  return name;
}

class Similar {
 public:
  explicit Similar(spec::ListRequest& request) : request_(request), function_(request.parts.back()) {
    for (const std::string& each : request.kernel.functions("*")) probed_.insert(split_module(each).name);
  }

  std::string tell() {
    std::vector<std::string> out;
    add_compiled(out);
    if (out.empty()) add_without_code(out);
    add_like_named(out);
    return join(out, "; ");
  }

 private:
  void add_compiled(std::vector<std::string>& out) {
    const bool is_return = request_.provider != nullptr && request_.provider->return_provider == nullptr;
    const std::string_view kind = is_return ? "kretprobe" : "kprobe";
    for (const std::string& each : request_.kernel.code(function_ + ".*")) {
      const std::string name = split_module(each).name;
      const Suffix* suffix = suffix_of(name, function_);
      if (suffix == nullptr || out.size() == kMostNames) continue;
      const std::string_view can = probed_.contains(name) ? "and can be probed" : "and is not in ftrace's list";
      out.push_back(fmt::format("`{}:{}` is {}, {}", kind, name, suffix->meaning, can));
    }
  }

  void add_without_code(std::vector<std::string>& out) {
    if (!request_.kernel.code(function_).empty()) return;
    if (const auto text = request_.kernel.c_prototype(function_, "vmlinux"))
      out.push_back(
          fmt::format("the kernel's types describe `{}`, but it has no code now: it is inlined in all "
                      "places, or ran only when the kernel started",
                      *text));
  }

  void add_like_named(std::vector<std::string>& out) const {
    constexpr size_t kShortest = 4;  // of a name that means something
    const std::string_view stem = stem_of(function_);
    if (stem.size() < kShortest || has_wildcard(function_)) return;
    std::vector<std::string> names;
    for (const std::string& each : probed_)
      if (each != function_ && stem_of(each) == stem && names.size() < kMostNames)
        names.push_back(fmt::format("`{}`", each));
    if (!names.empty()) out.push_back(fmt::format("functions of a similar name: {}", join(names, ", ")));
  }

  spec::ListRequest& request_;
  std::string function_;
  std::set<std::string> probed_;
};

}  // namespace

std::string tell_similar_functions(spec::ListRequest& request) {
  return request.parts.empty() ? "" : Similar(request).tell();
}

}  // namespace espy::probes
