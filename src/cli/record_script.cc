// What an event of a probe has is the context of its provider: arguments with their types, the result. Each value
// becomes a field of the layout and a value of a printf(). Probes of equal layouts share an action.
#include "cli/record_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "cli/attach_text.h"
#include "cli/bind_probes.h"
#include "cli/trace_probes.h"
#include "kernel/described_types.h"

namespace espy::cli {

namespace {

using recording::Field;
using recording::FieldKind;
using recording::FieldRole;
using types::Kind;

constexpr size_t kMaxMemoryFields = 100;                     // of a layout
constexpr std::string_view kSyscallNumber = "__syscall_nr";  // the name of the probe says it
constexpr uint32_t kMaxStructBytes = 16 << 10;

// The fields of a layout, with the values that the script prints for them.
struct Group {
  recording::Layout layout;
  std::string format, values;
  std::string points;                      // attach points
  uint32_t longest_bytes = 0;              // of its arrays and structs
  std::vector<std::string> left_out = {};  // sentences
  std::vector<std::string> refused = {};   // the same, of what a script reads
};

class FieldWriter {
 public:
  // `reads`: what to record of the probe; null: everything.
  FieldWriter(Environment& environment, kernel::TypeDescriber& describer, const RecordWishes& wishes,
              const ProbeReads* reads, Group& out)
      : e_(environment), describer_(describer), wishes_(wishes), reads_(reads), out_(out) {}

  void add(const spec::ContextField& field, FieldRole role, const std::string& expression) {
    if (e_.types[field.type].kind == Kind::kStruct) e_.kernel->complete(e_.types, field.type);
    const bool has_own_length = e_.types[field.type].may_be_cut && role == FieldRole::kArgs;
    const types::TypeId type_id = has_own_length ? e_.types.string(wishes_.max_text_bytes) : field.type;
    Field added{.role = role,
                .name = field.name,
                .type = describer_.add(type_id, described_depth(type_id, role)),
                .shown = shown(field, role)};
    const types::Type& type = e_.types[type_id];
    const bool is_readable = field.unreadable.empty() && is_wanted(field, role);
    if (is_readable && types::is_integer(type)) {
      append(added, FieldKind::kNumber, "%d", number(type, expression));
      add_read_memory(field.name, role, expression);
    } else if (is_readable && type.kind == Kind::kPointer) {
      append(added, FieldKind::kNumber, "%d", number(type, expression));
      if (e_.types[type.element].kind == Kind::kVoid) add_read_memory(field.name, role, expression);
      if (role == FieldRole::kValue && !is_read_through(field.type)) return;
      const bool may_be_written = !field.c_type.empty() && field.c_type.find("const") == field.c_type.npos;
      add_pointee(field.type, expression, 0, wishes_.depth, !may_be_written);
    } else if (is_readable && type.kind == Kind::kString) {
      const bool has_place = field.recipe.kind == spec::Recipe::Kind::kContextAddress;
      append(added, has_place ? FieldKind::kChars : FieldKind::kText, "%s", expression);
    } else if (is_readable && is_bytes(type)) {
      out_.longest_bytes = std::max(out_.longest_bytes, type.size_bytes);
      append(added, FieldKind::kBytes, "%r", fmt::format("buf({}, {})", expression, type.size_bytes));
      if (type.kind == Kind::kStruct) add_own_members(type_id, expression);
    } else {
      if (is_readable) note_left_out(type_id, role, expression, added.shown);
      added.kind = FieldKind::kNothing;
      if (field.name == kSyscallNumber) added.shown.clear();
      out_.layout.fields.push_back(std::move(added));
    }
  }

  // The address that this call of ksym() or usym() names.
  void add_symbol(const std::string& expression) {
    append({.role = FieldRole::kNamed, .name = expression}, FieldKind::kNumber, "%s", expression);
  }

  void add_stack(FieldRole role, const std::string& expression) {
    append({.role = role, .name = expression}, FieldKind::kStack, "%s", expression);
  }

 private:
  // Whether a script reads members of the struct that the pointer leads to, by other ways than a chain of members.
  bool is_read_through(types::TypeId type) const {
    if (e_.types[type].kind != Kind::kPointer) return true;
    const types::Type& element = e_.types[e_.types[type].element];
    return element.kind != Kind::kStruct || (wishes_.reads && wishes_.reads->struct_bytes.contains(element.name));
  }

  int32_t described_depth(types::TypeId type, FieldRole role) const {
    return role == FieldRole::kValue && !is_read_through(type) ? 0 : static_cast<int32_t>(wishes_.depth);
  }

  // As `espy -lv` shows it: arg0 and the like are not.
  std::string shown(const spec::ContextField& field, FieldRole role) const {
    if (role != FieldRole::kArgs && role != FieldRole::kResult) return "";
    return fmt::format("{} {}", field.c_type.empty() ? types::to_string(e_.types, field.type) : field.c_type,
                       field.name);
  }

  bool is_wanted(const spec::ContextField& field, FieldRole role) const {
    if (role == FieldRole::kValue || role == FieldRole::kLocal) return true;
    if (field.name == kSyscallNumber) return reads_ != nullptr && reads_->fields.contains(field.name);
    if (reads_ == nullptr || reads_->fields.contains(field.name)) return true;
    return reads_->all_arguments && role == FieldRole::kArgs;
  }

  // How much of a struct is copied: also what scripts read further in.
  uint32_t copied_bytes(const types::Type& type) const {
    uint32_t wanted = wishes_.max_text_bytes;
    if (wishes_.reads)
      if (const auto read = wishes_.reads->struct_bytes.find(type.name); read != wishes_.reads->struct_bytes.end())
        wanted = std::max(wanted, read->second);
    return std::min({type.size_bytes, wanted, kMaxStructBytes});
  }

  // Of an anonymous struct, any member may be read.
  bool is_read(const std::string& struct_name, const std::string& member) const {
    return !wishes_.reads || struct_name.empty() || member.empty() ||
           wishes_.reads->members.contains({struct_name, member});
  }

  // What a script reads is recorded whole.
  uint32_t most_bytes() const { return reads_ != nullptr ? kMaxStructBytes : wishes_.max_text_bytes; }

  bool is_bytes(const types::Type& type) const {
    const bool is_whole = type.kind == Kind::kArray || (type.kind == Kind::kStruct && type.complete);
    return is_whole && type.size_bytes > 0 && type.size_bytes <= most_bytes();
  }

  // Of a value that an event has, and the recording will not.
  void note_left_out(types::TypeId id, FieldRole role, const std::string& expression, std::string& shown) {
    const types::Type& type = e_.types[id];
    const bool is_large = type.size_bytes > most_bytes();
    const std::string why = is_large ? fmt::format("it has {} bytes", type.size_bytes)
                                     : fmt::format("its type is `{}`", types::to_string(e_.types, id));
    if (!shown.empty()) shown += fmt::format(" (not recorded: {})", why);
    if (role == FieldRole::kValue || (type.kind == Kind::kStruct && !type.complete)) return;
    const std::string sentence = fmt::format("`{}` is not recorded: {}", expression, why);
    (reads_ != nullptr ? out_.refused : out_.left_out)
        .push_back(is_large && reads_ == nullptr ? sentence + ", which is more than --size" : sentence);
  }

  // The texts and buffers that a script reads at an address that has no type: `str(arg1)`.
  void add_read_memory(const std::string& name, FieldRole role, const std::string& expression) {
    if (reads_ == nullptr || (role != FieldRole::kArgs && role != FieldRole::kArgument && role != FieldRole::kResult))
      return;
    const Field field{.role = FieldRole::kMemory, .pointer_in = static_cast<uint32_t>(out_.layout.fields.size() - 1)};
    const uint32_t most = wishes_.max_text_bytes;
    if (reads_->texts.contains(name))
      append(field, FieldKind::kText, "%s", fmt::format("str({}, {})", expression, most));
    if (reads_->buffers.contains(name))
      append(field, FieldKind::kBytes, "%r", fmt::format("buf({}, {})", expression, most));
  }

  // What the pointers in a struct, which is the last field, lead to.
  void add_own_members(types::TypeId id, const std::string& expression) {
    add_members(id, expression + ".", 0, e_.types[id].size_bytes, wishes_.depth,
                static_cast<uint32_t>(out_.layout.fields.size() - 1));
  }

  static std::string number(const types::Type& type, const std::string& expression) {
    return fmt::format("({}){}", type.is_signed ? "int64" : "uint64", expression);
  }

  void append(Field field, FieldKind kind, std::string_view format, const std::string& value) {
    field.kind = kind;
    out_.layout.fields.push_back(std::move(field));
    out_.format += fmt::format(" {}", format);
    out_.values += ", " + value;
  }

  // What the pointer leads to, whose field is the last one or, as a member of a struct, lies in it. Text that may be an
  // output buffer is not there yet.
  void add_pointee(types::TypeId pointer, const std::string& expression, uint32_t offset_bytes, uint32_t depth,
                   bool may_be_text, std::optional<uint32_t> holder = {}) {
    if (depth == 0 || ++memory_fields_ > kMaxMemoryFields) return;
    const types::TypeId element = e_.types[pointer].element;
    if (e_.types[element].kind == Kind::kStruct) e_.kernel->complete(e_.types, element);
    const types::Type& type = e_.types[element];
    Field field{.role = FieldRole::kMemory,
                .pointer_in = holder.value_or(static_cast<uint32_t>(out_.layout.fields.size() - 1)),
                .offset_bytes = offset_bytes};
    if (type.kind == Kind::kInt && type.size_bytes == 1 && type.char_like && may_be_text) {
      append(std::move(field), FieldKind::kText, "%s", fmt::format("str({}, {})", expression, wishes_.max_text_bytes));
    } else if (type.kind == Kind::kStruct && type.complete && type.size_bytes > 0) {
      const uint32_t size = copied_bytes(type);
      append(std::move(field), FieldKind::kBytes, "%r", fmt::format("buf({}, {})", expression, size));
      if (depth > 1)
        add_members(element, expression + "->", 0, size, depth - 1,
                    static_cast<uint32_t>(out_.layout.fields.size() - 1));
    }
  }

  // The pointers in the first `size_bytes` of a struct, which is the field `holder`.
  void add_members(types::TypeId holder_type, const std::string& path, uint32_t base_bytes, uint32_t size_bytes,
                   uint32_t depth, uint32_t holder) {
    const std::vector<types::Member> members = e_.types[holder_type].members;
    for (const types::Member& member : members) {
      const types::Type& type = e_.types[member.type];
      const uint32_t offset = base_bytes + member.offset_bytes();
      if (offset + type.size_bytes > size_bytes || member.bit_size > 0) continue;
      if (!is_read(e_.types[holder_type].name, member.name)) continue;
      if (type.kind == Kind::kStruct)
        add_members(member.type, member.name.empty() ? path : path + member.name + ".", offset, size_bytes, depth,
                    holder);
      else if (type.kind == Kind::kPointer && !member.name.empty())
        add_pointee(member.type, path + member.name, offset, depth, true, holder);
    }
  }

  Environment& e_;
  kernel::TypeDescriber& describer_;
  const RecordWishes& wishes_;
  const ProbeReads* reads_;
  Group& out_;
  size_t memory_fields_ = 0;
};

class ScriptWriter {
 public:
  ScriptWriter(Environment& environment, const RecordWishes& wishes)
      : e_(environment), wishes_(wishes), describer_(environment.types, *environment.kernel) {}

  // `is_of_script`: it is an attach point of a script of --for.
  Status add(const std::vector<std::string>& parts, bool is_of_script) {
    const std::string target = fmt::format("{}", fmt::join(parts, ":"));
    const spec::Provider* provider = e_.registry.find_provider(parts[0]);
    if (provider == nullptr || provider->attach == nullptr || provider->timer == spec::Timer::kOnOneCpu)
      return fail(fmt::format("`{}` cannot be recorded", target), 0,
                  provider != nullptr ? "begin, end and interval are there in any recording"
                                      : "espy -l lists probes: espy record -o FILE tracepoint:syscalls:sys_enter_*");
    const std::vector<std::string> names(parts.begin() + 1, parts.end());
    source::Diagnostics diagnostics, ignored;
    const std::vector<spec::BoundProbe> bound = bind(*provider, names, true, reads_locals(), diagnostics);
    // Functions without arguments, or without debug information, are probed only if those are not asked for.
    const bool may_lack = provider->find_type != nullptr || bound.empty();
    const std::vector<spec::BoundProbe> all =
        may_lack ? bind(*provider, names, false, false, ignored) : std::vector<spec::BoundProbe>();
    if (bound.empty() && all.empty()) return nothing_there(target, diagnostics);
    const std::string given = fmt::format("{}", fmt::join(names, ":"));
    for (const spec::BoundProbe& each : bound)
      if (is_asked_for(each, is_of_script)) add_probe(*provider, each, true, given);
    for (const spec::BoundProbe& each : all)
      if (is_asked_for(each, is_of_script)) add_probe(*provider, each, false, given);
    return {};
  }

  Result<RecordScript> finish() {
    if (refused_) return tl::unexpected(*refused_);
    RecordScript out;
    out.left_out = std::move(left_out_);
    // Each action may be a program of its own.
    out.text = fmt::format(
        "config = {{\n  max_strlen = {};\n  print_maps_on_exit = false;\n  max_probes = {};\n  max_bpf_progs = "
        "{};\n}}\n",
        longest_read_bytes(), std::max<size_t>(probes_.size(), 1024), std::max<size_t>(probes_.size(), 1024));
    out.parents = e_.kernel->find_struct(e_.types, "task_struct").valid() ? wishes_.parents : 0;
    std::string parent_formats;
    for (uint32_t i = 0; i < out.parents; ++i) parent_formats += " %d %s";
    for (size_t i = 0; i < groups_.size(); ++i) {
      Group& group = groups_[i];
      out.text += fmt::format(
          "\n{} {{\n  printf(\"{}{} %s %d %d %d %d %d %d %d %s{}{}\", probe, nsecs, cpu, pid, tid, uid, gid, cgroup, "
          "comm{}{});\n}}\n",
          group.points, kRecordMark, i, parent_formats, group.format, parent_values(out.parents), group.values);
      out.layouts.push_back(std::move(group.layout));
    }
    describe_tasks();
    out.types = describer_.take();
    out.probes = std::move(probes_);
    return out;
  }

 private:
  std::vector<spec::BoundProbe> bind(const spec::Provider& provider, const std::vector<std::string>& parts,
                                     bool has_types, bool has_locals, source::Diagnostics& diagnostics) {
    return bind_probes(e_, e_.config, provider, parts, has_types, diagnostics, has_locals);
  }

  // A wildcard of a script stands for the probes that it has live.
  bool is_asked_for(const spec::BoundProbe& bound, bool is_of_script) const {
    return !is_of_script || wishes_.reads->probes.contains(bound.probe.name);
  }

  void add_probe(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types,
                 const std::string& given) {
    if (!names_.insert(bound.probe.name).second) return;
    const ProbeReads* reads = reads_of(bound.probe);
    const std::string of_script = reads != nullptr ? bound.probe.name : "";
    const auto known_types = has_types ? "" : " untyped";
    const std::string key = fmt::format("{} {} {}{}", provider.name, bound.share, of_script, known_types);
    auto known = by_share_.find(key);
    if (known == by_share_.end()) known = by_share_.emplace(key, group_of(provider, bound, has_types, reads)).first;
    Group& group = groups_[known->second];
    const std::vector<std::string> parts = parts_of(provider, bound.probe);
    group.points += (group.points.empty() ? "" : ",\n") + fmt::format("{}:{}", provider.name, quoted(parts));
    probes_.push_back({std::string(provider.name), bound.probe.name, parts, given, bound.probe.target,
                       bound.probe.function, static_cast<uint32_t>(known->second)});
  }

  // Functions of programs by their symbols: names of C++ have colons.
  static std::vector<std::string> parts_of(const spec::Provider& provider, const program::Probe& probe) {
    const bool is_function = provider.find_type != nullptr && !probe.function.empty() &&
                             probe.name.ends_with(":" + probe.function) && probe.target.find('/') != std::string::npos;
    const size_t middle = provider.name.size() + 1 + probe.target.size();
    if (is_function && middle + 1 + probe.function.size() == probe.name.size()) return {probe.target, probe.function};
    const std::vector<std::string> parts = split_attach_point(probe.name);
    return {parts.begin() + 1, parts.end()};
  }

  static std::string quoted(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& part : parts)
      out += (out.empty() ? "" : ":") + (part.find_first_of(" :,{\"") == std::string::npos ? part : literal(part));
    return out;
  }

  const ProbeReads* reads_of(const program::Probe& probe) const {
    if (!wishes_.reads) return nullptr;
    const auto found = wishes_.reads->probes.find(probe.name);
    return found == wishes_.reads->probes.end() ? nullptr : &found->second;
  }

  // The index of the group whose layout and values the probe has.
  size_t group_of(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types,
                  const ProbeReads* reads) {
    const spec::ProbeContext context = context_of(e_, provider, bound, has_types, has_types && reads_locals());
    Group group;
    group.layout.points_to_user_space = context.pointers == types::AddressSpace::kUser;
    group.layout.has_kernel_names = true;
    group.layout.has_user_names = provider.find_type != nullptr || (reads != nullptr && !reads->symbols.empty());
    FieldWriter fields(e_, describer_, wishes_, reads, group);
    for (const spec::ContextField& field : context.args) fields.add(field, FieldRole::kArgs, "args." + field.name);
    const size_t words = context.args.empty() ? context.arguments.size() : context.args.size();
    for (size_t i = 0; i < std::min(words, context.arguments.size()); ++i)
      if (const spec::ContextField& field = context.arguments[i]; field.name.starts_with("arg"))
        fields.add(field, FieldRole::kArgument, field.name);
    if (context.retval) fields.add(*context.retval, FieldRole::kResult, "retval");
    if (reads != nullptr) add_reads_of_scripts(*reads, context, fields);
    if (wishes_.kernel_stack || (reads && reads->kernel_stack)) fields.add_stack(FieldRole::kKernelStack, "kstack");
    const bool is_read = reads != nullptr && !reads->user_stack.empty();
    if (wishes_.user_stack || is_read) fields.add_stack(FieldRole::kUserStack, is_read ? reads->user_stack : "ustack");
    longest_bytes_ = std::max(longest_bytes_, group.longest_bytes);
    for (const std::string& each : group.left_out) left_out_.push_back(fmt::format("{}: {}", bound.probe.name, each));
    for (const std::string& each : group.refused)
      if (!refused_)
        refused_ = Error{fmt::format("{}: {}", bound.probe.name, each), 0, "at most 16 KiB of a value are recorded"};
    const auto same = std::ranges::find_if(
        groups_, [&](const Group& each) { return each.layout == group.layout && each.values == group.values; });
    if (same != groups_.end()) return static_cast<size_t>(same - groups_.begin());
    groups_.push_back(std::move(group));
    return groups_.size() - 1;
  }

  static void add_reads_of_scripts(const ProbeReads& reads, const spec::ProbeContext& context, FieldWriter& fields) {
    for (const spec::ContextField& field : context.locals)
      if (reads.all_locals || reads.locals.contains(field.name))
        fields.add(field, FieldRole::kLocal, "locals." + field.name);
    for (const auto& [expression, type] : reads.values)
      fields.add({.name = expression, .type = type, .recipe = {}}, FieldRole::kValue, expression);
    for (const std::string& expression : reads.symbols) fields.add_symbol(expression);
  }

  bool reads_locals() const { return wishes_.reads && wishes_.reads->has_locals; }

  // The values of each task's parents, as far as there are types of the kernel.
  std::string parent_values(uint32_t count) const {
    std::string out, pointer = "curtask";
    for (uint32_t i = 0; i < count; ++i) {
      out += fmt::format(", ppid({0}), pcomm({0})", pointer);
      pointer += "->real_parent";
    }
    return out;
  }

  // task_struct, for `ppid` and its like, which read its members.
  void describe_tasks() {
    const types::TypeId task = e_.kernel->find_struct(e_.types, "task_struct");
    constexpr std::string_view kMembers[] = {"pid", "tgid", "comm", "real_parent", "group_leader"};
    if (task.valid()) describer_.add_members(task, kMembers);
  }

  // Of texts and, as far as scripts read them, structs.
  uint32_t longest_read_bytes() const {
    uint32_t out = std::max(wishes_.max_text_bytes, longest_bytes_);
    if (!wishes_.reads) return out;
    for (const auto& [name, bytes] : wishes_.reads->struct_bytes) out = std::max(out, std::min(bytes, kMaxStructBytes));
    for (const auto& [name, reads] : wishes_.reads->probes)
      for (const auto& [expression, type] : reads.values)
        if (e_.types[type].kind == Kind::kString) out = std::max(out, e_.types[type].size_bytes);
    return out;
  }

  static tl::unexpected<Error> nothing_there(const std::string& target, const source::Diagnostics& diagnostics) {
    if (!diagnostics.all().empty()) {
      const source::Diagnostic& first = diagnostics.all().front();
      return fail(first.message, 0, first.hint);
    }
    return fail(fmt::format("no probe matches `{}`", target), 0,
                can_read_tracefs() ? "espy -l lists probes" : "tracefs cannot be read");
  }

  Environment& e_;
  const RecordWishes& wishes_;
  kernel::TypeDescriber describer_;
  std::vector<Group> groups_;
  std::map<std::string, size_t> by_share_;  // indexes in `groups_`
  std::vector<recording::Probe> probes_;
  std::set<std::string> names_;
  uint32_t longest_bytes_ = 0;  // of the arrays and structs of all groups
  std::vector<std::string> left_out_;
  std::optional<Error> refused_;
};

}  // namespace

Result<RecordScript> write_record_script(std::span<const std::string> targets, const RecordWishes& wishes,
                                         Environment& environment) {
  ScriptWriter writer(environment, wishes);
  if (wishes.reads)
    for (const std::vector<std::string>& target : wishes.reads->targets) TRY_STATUS(writer.add(target, true));
  for (const std::string& target : targets) TRY_STATUS(writer.add(split_attach_point(target), false));
  return writer.finish();
}

}  // namespace espy::cli
