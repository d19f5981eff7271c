#include "kernel/directory_kernel.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "kernel/abi_constants.h"
#include "kernel/btf.h"
#include "kernel/cpu_list.h"
#include "kernel/functions.h"
#include "kernel/tracefs.h"

namespace espy::kernel {

namespace {

using types::Kind;
using types::TypeId;
using types::Types;

constexpr std::string_view kRawTracepointPrefix = "btf_trace_";

std::string_view keyword(BtfKind kind) {
  if (kind == BtfKind::kStruct) return "struct";
  return kind == BtfKind::kUnion ? "union" : "enum";
}

}  // namespace

DirectoryKernel::DirectoryKernel(std::string root, const Machine& machine, Tries tries)
    : root_(std::move(root)), machine_(machine), tries_(std::move(tries)), btf_(root_ + "/sys/kernel/btf") {}

Status DirectoryKernel::use_btf_file(const std::string& path) {
  btf_.use_vmlinux(TRY(Btf::open(path)));
  return {};
}

bool DirectoryKernel::has(Feature feature) {
  const auto [entry, is_new] = features_.try_emplace(feature, false);
  if (is_new) entry->second = tries_.feature(feature);
  return entry->second;
}

TypeId DirectoryKernel::find_struct(Types& types, std::string_view tag) {
  const TypeId own = types.find_struct(tag);
  if (own.valid() && types[own].complete) return own;
  const auto place = btf_.find(tag, kStructs);
  return place ? BtfConverter(btf_, types).convert(*place) : own;
}

TypeId DirectoryKernel::find_enum(Types& types, std::string_view tag) {
  if (const TypeId own = types.find_enum(tag); own.valid()) return own;
  const auto place = btf_.find(tag, kEnums);
  return place ? BtfConverter(btf_, types).convert(*place) : TypeId{};
}

TypeId DirectoryKernel::find_typedef(Types& types, std::string_view name) {
  if (const TypeId own = types.find_alias(name); own.valid()) return own;
  const auto place = btf_.find(name, kinds(BtfKind::kTypedef));
  return place ? BtfConverter(btf_, types).convert(*place) : TypeId{};
}

std::optional<Enumerated> DirectoryKernel::find_enumerator(Types& types, std::string_view name) {
  for (uint32_t i = 0; i < types.size(); ++i) {
    const types::Type& type = types[TypeId{i}];
    if (type.kind != Kind::kEnum || type.origin.btf_id != 0) continue;
    for (const types::Enumerator& enumerator : type.enumerators) {
      if (enumerator.name == name) return Enumerated{TypeId{i}, enumerator.value};
    }
  }
  const auto found = btf_.find_enumerator(name);
  if (!found) return std::nullopt;
  const auto& [place, index] = *found;
  return Enumerated{BtfConverter(btf_, types).convert(place),
                    Btf::enumerator(place.record, index, place.record.has_negative()).value};
}

void DirectoryKernel::complete(Types& types, TypeId struct_type) {
  const types::Type& type = types[struct_type];
  if (type.kind != Kind::kStruct || type.complete || types.complete_by_origin(struct_type)) return;
  BtfConverter converter(btf_, types);
  if (type.origin.btf_id != 0) return converter.complete_struct(struct_type);
  // The script declared it (`struct sock *sk;`) without a definition.
  if (type.name.empty()) return;
  if (const auto place = btf_.find(std::string(type.name), kStructs)) converter.define_as(struct_type, *place);
}

Status DirectoryKernel::add_types(std::string_view btf, bool before_kernel) {
  btf_.add_header(TRY(Btf::parse(std::string(btf))), before_kernel);
  return {};
}

std::vector<std::string> DirectoryKernel::struct_names(std::string_view glob) {
  std::set<std::string> names;
  for (uint32_t module = 0; module <= btf_.modules().size(); ++module) {
    const Btf* btf = btf_.object(module);
    if (!btf) continue;
    btf->for_each([&](const BtfRecord& record) {
      if (!record.is(kStructs | kEnums)) return true;
      const std::string_view tag = btf->name(record);
      if (tag.empty()) return true;
      std::string name = fmt::format("{} {}", keyword(record.kind()), tag);
      if (glob_match(glob, name) || glob_match(glob, tag)) names.insert(std::move(name));
      return true;
    });
  }
  return {names.begin(), names.end()};
}

// "struct foo", "union foo", "enum foo", or any of the kinds `untagged` named foo.
std::optional<BtfPlace> DirectoryKernel::find_definition(std::string_view name, BtfKinds untagged) {
  BtfKinds set = untagged;
  if (name.starts_with("struct ")) {
    set = kinds(BtfKind::kStruct);
  } else if (name.starts_with("union ")) {
    set = kinds(BtfKind::kUnion);
  } else if (name.starts_with("enum ")) {
    set = kEnums;
  }
  if (const size_t space = name.find(' '); space != name.npos) name = trim(name.substr(space));
  return btf_.find(name, set);
}

std::optional<std::string> DirectoryKernel::c_definition(std::string_view name) {
  const auto place = find_definition(name, kStructs | kEnums);
  if (!place) return std::nullopt;
  return print_definition(*btf_.object(place->module), place->record);
}

std::optional<std::string> DirectoryKernel::c_layout(std::string_view name) {
  const auto place = find_definition(name, kStructs | kEnums | kinds(BtfKind::kTypedef));
  if (!place) return std::nullopt;
  return print_layout(*btf_.object(place->module), place->record);
}

std::optional<std::string> DirectoryKernel::c_prototype(std::string_view name, std::string_view module) {
  const auto place = find_function_record(name, module);
  if (!place) return std::nullopt;
  return print_prototype(*btf_.object(place->module), place->record);
}

// Of a raw tracepoint, btf_trace_NAME is a typedef of a pointer to the function, which has a leading void *.
std::optional<CTypes> DirectoryKernel::c_types(const FunctionPrototype& function) {
  auto place = btf_.record(function.module_index, function.btf_id);
  const bool is_tracepoint = place && place->record.is(kinds(BtfKind::kTypedef));
  for (int depth = 0; place && depth < 3 && !place->record.is(kinds(BtfKind::kFuncProto)); ++depth)
    place = btf_.record(place->module, place->record.size_or_type);
  if (!place || !place->record.is(kinds(BtfKind::kFuncProto))) return std::nullopt;
  const Btf& btf = *btf_.object(place->module);
  CTypes out;
  for (uint32_t i = is_tracepoint ? 1 : 0; i < place->record.count(); ++i)
    out.parameters.push_back(print_type(btf, Btf::parameter(place->record, i).type));
  out.result = print_type(btf, place->record.size_or_type);
  return out;
}

std::optional<BtfPlace> DirectoryKernel::find_function_record(std::string_view name, std::string_view module) {
  if (module.empty()) return btf_.find(name, kinds(BtfKind::kFunc));
  const auto index = btf_.module_index(module);
  const Btf* btf = index ? btf_.object(*index) : nullptr;
  const auto record = btf ? btf->find(name, kinds(BtfKind::kFunc)) : std::nullopt;
  if (!record) return std::nullopt;
  return BtfPlace{*index, *record};
}

std::optional<FunctionPrototype> DirectoryKernel::find_function(Types& types, std::string_view name,
                                                                std::string_view module) {
  const auto place = find_function_record(name, module);
  if (!place) return std::nullopt;
  auto prototype = BtfConverter(btf_, types).prototype(*place);
  return FunctionPrototype{.name = std::string(name),
                           .module = std::string(btf_.module_name(place->module)),
                           .btf_id = place->record.id,
                           .module_index = place->module,
                           .parameters = std::move(prototype.parameters),
                           .result = prototype.result};
}

// The limits are MAX_BPF_FUNC_ARGS and those of btf_distill_func_proto() in kernel/bpf/btf.c, and where the kernel
// lacks a feature, those of its architecture's trampolines.
std::optional<std::string> DirectoryKernel::why_not_passable(const BtfPlace& function) {
  constexpr size_t kMaxWords = 12;
  constexpr uint32_t kWordBytes = 8;
  const auto prototype = btf_.record(function.module, function.record.size_or_type);
  if (!prototype || prototype->record.kind() != BtfKind::kFuncProto) return "has no prototype in BTF";
  const auto skip =
      kinds(BtfKind::kTypedef, BtfKind::kConst, BtfKind::kVolatile, BtfKind::kRestrict, BtfKind::kTypeTag);
  const auto strip = [&](uint32_t id) {
    auto place = btf_.record(function.module, id);
    while (place && place->record.is(skip)) place = btf_.record(function.module, place->record.size_or_type);
    return place;
  };
  size_t words = 0;
  for (uint32_t i = 0; i < prototype->record.count(); ++i) {
    const uint32_t id = Btf::parameter(prototype->record, i).type;
    const auto type = strip(id);
    if (id == 0) return "has variable arguments";
    if (!type || type->record.is(kinds(BtfKind::kUnion, BtfKind::kFloat))) return "takes a union or a float";
    const uint32_t size_bytes = type->record.is(kStructs) ? type->record.size_or_type : kWordBytes;
    if (type->record.is(kStructs) && !has(Feature::kStructArguments)) return "takes a struct by value";
    if (size_bytes > 2 * kWordBytes) return "takes a struct of more than two words by value";
    words += size_bytes > kWordBytes ? 2 : 1;
  }
  const auto result = strip(prototype->record.size_or_type);
  if (result && result->record.is(kStructs | kinds(BtfKind::kFloat))) return "returns a struct or a float";
  const size_t in_registers = machine_.arch.argument_offsets.size();
  if (words > kMaxWords || (words > in_registers && !has(Feature::kStackArguments)))
    return fmt::format("has {} words of arguments", words);
  return std::nullopt;
}

std::optional<std::string> DirectoryKernel::why_not_passable(const FunctionPrototype& function) {
  const auto place = btf_.record(function.module_index, function.btf_id);
  return place ? why_not_passable(*place) : std::nullopt;
}

std::vector<FunctionPrototype> DirectoryKernel::find_functions(Types* types, std::string_view glob,
                                                               std::string_view module_glob) {
  const std::vector<std::string> listed = functions(glob);
  const std::set<std::string_view> may_be_probed(listed.begin(), listed.end());
  std::vector<FunctionPrototype> out;
  for (uint32_t module = 0; module <= btf_.modules().size(); ++module) {
    const std::string module_name(btf_.module_name(module));
    const Btf* btf = glob_match(module_glob, module_name) ? btf_.object(module) : nullptr;
    if (!btf) continue;
    const size_t first = out.size();
    btf->for_each([&](const BtfRecord& record) {
      const std::string_view name = btf->name(record);
      if (record.kind() != BtfKind::kFunc || !glob_match(glob, name)) return true;
      const std::string full = module == 0 ? std::string(name) : fmt::format("{} [{}]", name, module_name);
      if (!may_be_probed.contains(full) || why_not_passable(BtfPlace{module, record})) return true;
      FunctionPrototype function{
          .name = std::string(name), .module = module_name, .btf_id = record.id, .module_index = module};
      if (types) {
        auto prototype = BtfConverter(btf_, *types).prototype({module, record});
        function.parameters = std::move(prototype.parameters);
        function.result = prototype.result;
      }
      out.push_back(std::move(function));
      return true;
    });
    const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::stable_sort(out.begin() + static_cast<long>(first), out.end(), by_name);
    const auto same_name = [](const auto& a, const auto& b) { return a.name == b.name; };
    out.erase(std::unique(out.begin() + static_cast<long>(first), out.end(), same_name), out.end());
  }
  return out;
}

// The typedef btf_trace_NAME has the types of a tracepoint's arguments but not their names. Functions generated by the
// same macros have both: the one for BPF (only for the first event of a class), and since 6.5 a probe stub for each.
std::optional<BtfPlace> DirectoryKernel::find_tracepoint_function(std::string_view name) {
  for (const char* prefix : {"__bpf_trace_", "__probestub_", "__traceiter_"}) {
    if (const auto place = btf_.find(prefix + std::string(name), kinds(BtfKind::kFunc))) return place;
  }
  return std::nullopt;
}

std::optional<FunctionPrototype> DirectoryKernel::find_raw_tracepoint(Types& types, std::string_view name) {
  const auto typedef_place = btf_.find(std::string(kRawTracepointPrefix) + std::string(name), kinds(BtfKind::kTypedef));
  if (!typedef_place) return std::nullopt;
  auto described = find_tracepoint_function(name);
  if (!described) {
    const auto pointer = btf_.record(typedef_place->module, typedef_place->record.size_or_type);
    if (pointer) described = btf_.record(pointer->module, pointer->record.size_or_type);
  }
  if (!described || !described->record.is(kinds(BtfKind::kFunc, BtfKind::kFuncProto))) return std::nullopt;
  auto prototype = BtfConverter(btf_, types).prototype(*described);
  auto& parameters = prototype.parameters;
  if (!parameters.empty()) parameters.erase(parameters.begin());  // void *__data
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].offset_bits -= 64;
    if (parameters[i].name.empty()) parameters[i].name = fmt::format("arg{}", i);
  }
  return FunctionPrototype{.name = std::string(name),
                           .module = std::string(btf_.module_name(typedef_place->module)),
                           .btf_id = typedef_place->record.id,
                           .module_index = typedef_place->module,
                           .parameters = std::move(parameters),
                           .result = types.void_type()};
}

// Scanned once: a wildcard over tracepoints queries each of two thousand.
const std::map<std::string, std::string, std::less<>>& DirectoryKernel::all_raw_tracepoints() {
  if (raw_tracepoints_) return *raw_tracepoints_;
  raw_tracepoints_.emplace();
  if (!has_btf()) {  // events have the names of their tracepoints, except those of single system calls
    for (const std::string& event : tracepoints("*", "*"))
      if (!event.starts_with("syscalls:") && !event.starts_with("ftrace:"))
        raw_tracepoints_->emplace(event.substr(event.find(':') + 1), "");
  }
  for (uint32_t module = 0; module <= btf_.modules().size(); ++module) {
    const Btf* btf = btf_.object(module);
    if (!btf) continue;
    btf->for_each([&](const BtfRecord& record) {
      if (record.kind() != BtfKind::kTypedef) return true;
      std::string_view name = btf->name(record);
      if (!name.starts_with(kRawTracepointPrefix)) return true;
      name.remove_prefix(kRawTracepointPrefix.size());
      raw_tracepoints_->emplace(name, module == 0 ? "vmlinux" : btf_.modules()[module - 1]);
      return true;
    });
  }
  return *raw_tracepoints_;
}

std::vector<std::string> DirectoryKernel::raw_tracepoints(std::string_view glob) {
  const auto& all = all_raw_tracepoints();
  if (!has_wildcard(glob))
    return all.contains(glob) ? std::vector<std::string>{std::string(glob)} : std::vector<std::string>{};
  std::vector<std::string> out;
  for (const auto& [name, module] : all)
    if (glob_match(glob, name)) out.push_back(name);
  return out;
}

std::string DirectoryKernel::raw_tracepoint_module(std::string_view name) {
  const auto found = all_raw_tracepoints().find(name);
  return found == all_raw_tracepoints().end() ? "" : found->second;
}

// Cached: lowering asks at every read of kernel memory.
std::optional<uint32_t> DirectoryKernel::kfunc_id(std::string_view name) {
  if (const auto known = kfuncs_.find(name); known != kfuncs_.end()) return known->second;
  const Btf* btf = btf_.vmlinux();
  const auto record = btf ? btf->find(name, kinds(BtfKind::kFunc)) : std::nullopt;
  const auto id = record ? std::optional(record->id) : std::nullopt;
  kfuncs_.emplace(name, id);
  return id;
}

bool DirectoryKernel::is_kfunc_allowed(std::string_view name, uint32_t program_type) {
  const auto id = kfunc_id(name);
  return id && (!tries_.kfunc || tries_.kfunc(*id, program_type));
}

std::optional<TypeLocation> DirectoryKernel::btf_location(const Types& types, TypeId struct_type) {
  const types::Type& type = types[struct_type];
  if (type.kind != Kind::kStruct || type.origin.btf_id == 0) return std::nullopt;
  const auto place = btf_.record(type.origin.module, type.origin.btf_id);
  if (!place || place->module >= BtfSet::kFirstHeader) return std::nullopt;
  if (place->record.is(kStructs)) return TypeLocation{place->module, place->record.id};
  const auto whole = btf_.find(type.name, kStructs);
  if (!whole || whole->module >= BtfSet::kFirstHeader) return std::nullopt;
  return TypeLocation{whole->module, whole->record.id};
}

// Searched until it is found: it may be mounted later.
const std::string& DirectoryKernel::tracing() {
  if (tracing_.empty()) tracing_ = find_tracing(root_);
  return tracing_;
}

std::vector<std::string> DirectoryKernel::tracepoints(std::string_view category_glob, std::string_view event_glob) {
  return tracing().empty() ? std::vector<std::string>{} : list_tracepoints(tracing(), category_glob, event_glob);
}

Result<Tracepoint> DirectoryKernel::tracepoint(Types& types, std::string_view category, std::string_view event) {
  if (tracing().empty()) {
    return fail("tracefs is not mounted", ENOENT, "mount -t tracefs tracefs /sys/kernel/tracing");
  }
  return parse_tracepoint(*this, types, category, event, TRY(read_tracepoint_format(tracing(), category, event)));
}

std::optional<uint32_t> DirectoryKernel::syscall_number(std::string_view name) {
  return find_syscall_number(arch(), name);
}

std::optional<std::string> DirectoryKernel::syscall_name(uint32_t number) {
  const auto name = find_syscall_name(arch(), number);
  if (!name) return std::nullopt;
  return std::string(*name);
}

std::vector<std::string> DirectoryKernel::functions(std::string_view glob) {
  const std::string listed =
      traceable_functions_.empty() ? tracing() + "/available_filter_functions" : traceable_functions_;
  return list_functions(listed, root_ + "/proc/kallsyms", glob);
}

std::vector<std::string> DirectoryKernel::code(std::string_view glob) {
  return list_code(root_ + "/proc/kallsyms", glob);
}

Status DirectoryKernel::use_traceable_functions(const std::string& path) {
  if (!for_each_line(path, [](std::string_view) { return false; })) return fail_errno("cannot read " + path, errno);
  traceable_functions_ = path;
  return {};
}

bool DirectoryKernel::is_kprobe_forbidden(std::string_view function) {
  if (!kprobe_blacklist_) kprobe_blacklist_ = read_kprobe_blacklist(root_ + std::string(kKprobeBlacklist));
  return kprobe_blacklist_->contains(function);
}

std::optional<uint64_t> DirectoryKernel::symbol_address(std::string_view name) {
  const auto known = addresses_.find(name);
  if (known != addresses_.end()) return known->second;
  return addresses_.emplace(name, find_symbol(root_ + "/proc/kallsyms", name)).first->second;
}

// ---- The running kernel.

Result<std::unique_ptr<Kernel>> open_kernel(std::string root, Tries tries) {
  while (root.ends_with('/')) root.pop_back();
  struct stat status = {};
  if (stat((root + "/").c_str(), &status) != 0) return fail_errno(root, errno);
  const DirectoryKernel::Machine machine{host_arch(), static_cast<uint32_t>(::sysconf(_SC_PAGESIZE)),
                                         possible_cpu_count(root).value_or(0)};
  auto kernel = std::make_unique<DirectoryKernel>(root, machine, std::move(tries));
  const char* types = std::getenv("BPFTRACE_BTF");
  const Status taken = types != nullptr ? kernel->use_btf_file(types) : Status();
  if (!taken) return fail("BPFTRACE_BTF: " + taken.error().message, taken.error().code);
  return kernel;
}

}  // namespace espy::kernel
