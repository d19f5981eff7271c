// What an event of a probe has is the context of its provider: arguments with their types, the result. Each value
// becomes a field of the layout and a value of a printf(). Probes of equal layouts share an action.
#include "record/record_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "kernel/described_kernel.h"
#include "run/attach_words.h"
#include "syntax/build.h"
#include "syntax/format_script.h"

namespace espy::record {

namespace {

using recording::Field;
using recording::FieldKind;
using recording::FieldRole;
using syntax::Build;
using syntax::ExprId;
using types::Kind;

// Builds an expression; each use of it in the script is a copy.
using Expression = std::function<ExprId()>;

constexpr size_t kMaxMemoryFields = 100;                     // of a layout
constexpr std::string_view kSyscallNumber = "__syscall_nr";  // the name of the probe says it
constexpr uint32_t kMaxRecordedBytes = 16 << 10;

// The fields of a layout, with the values that the script prints for them.
struct Group {
  recording::Layout layout;
  std::string format;
  std::vector<ExprId> values;
  std::vector<syntax::AttachPoint> points;
  bool is_bound = false;  // each point has its probe in `bound`
  std::vector<spec::BoundProbe> bound;
  uint32_t longest_bytes = 0;              // of its arrays and structs
  std::vector<std::string> left_out = {};  // sentences
  std::vector<std::string> refused = {};   // the same, of what a script reads
};

class FieldWriter {
 public:
  // `reads`: what to record of the probe; null: everything. `build` adds to the script.
  FieldWriter(run::Environment& environment, kernel::TypeDescriber& describer, const RecordWishes& wishes,
              const ProbeReads* reads, const Build& build, Group& out)
      : e_(environment), describer_(describer), wishes_(wishes), reads_(reads), build_(build), out_(out) {}

  void add(const spec::ContextField& field, FieldRole role, const Expression& expression) {
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
      append(added, has_place ? FieldKind::kChars : FieldKind::kText, "%s", expression());
    } else if (is_readable && is_bytes(type)) {
      out_.longest_bytes = std::max(out_.longest_bytes, type.size_bytes);
      append(added, FieldKind::kBytes, "%r", call("buf", expression, type.size_bytes));
      if (type.kind == Kind::kStruct) add_own_members(type_id, expression);
    } else {
      if (is_readable) note_left_out(type_id, role, expression, added.shown);
      added.kind = FieldKind::kNothing;
      if (field.name == kSyscallNumber) added.shown.clear();
      out_.layout.fields.push_back(std::move(added));
    }
  }

  // The address that a call of ksym() or usym() names.
  void add_symbol(const std::string& name, ExprId call) {
    append({.role = FieldRole::kNamed, .name = name}, FieldKind::kNumber, "%s", call);
  }

  void add_stack(FieldRole role, const std::string& name) {
    append({.role = role, .name = name}, FieldKind::kStack, "%s", build_.name(name));
  }

  // Of an argument that cannot be named.
  void leave_out(const std::string& name) {
    out_.left_out.push_back(name.empty() ? "an argument without a name is not recorded"
                                         : fmt::format("of the arguments named `{}` only the first is recorded", name));
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
    return std::min({type.size_bytes, wanted, kMaxRecordedBytes});
  }

  // Of an anonymous struct, any member may be read.
  bool is_read(const std::string& struct_name, const std::string& member) const {
    return !wishes_.reads || struct_name.empty() || member.empty() ||
           wishes_.reads->members.contains({struct_name, member});
  }

  // What a script reads is recorded whole.
  uint32_t most_bytes() const { return reads_ != nullptr ? kMaxRecordedBytes : wishes_.max_text_bytes; }

  bool is_bytes(const types::Type& type) const {
    const bool is_whole = type.kind == Kind::kArray || (type.kind == Kind::kStruct && type.complete);
    return is_whole && type.size_bytes > 0 && type.size_bytes <= most_bytes();
  }

  // Of a value that an event has, and the recording will not.
  void note_left_out(types::TypeId id, FieldRole role, const Expression& expression, std::string& shown) {
    const types::Type& type = e_.types[id];
    const bool is_large = type.size_bytes > most_bytes();
    const std::string why = is_large ? fmt::format("it has {} bytes", type.size_bytes)
                                     : fmt::format("its type is `{}`", types::to_string(e_.types, id));
    if (!shown.empty()) shown += fmt::format(" (not recorded: {})", why);
    if (role == FieldRole::kValue || (type.kind == Kind::kStruct && !type.complete)) return;
    const std::string sentence = fmt::format("`{}` is not recorded: {}", syntax::format(build_.ast, expression()), why);
    (reads_ != nullptr ? out_.refused : out_.left_out)
        .push_back(is_large && reads_ == nullptr ? sentence + ", which is more than --size" : sentence);
  }

  // The texts and buffers that a script reads at an address that has no type: `str(arg1)`.
  void add_read_memory(const std::string& name, FieldRole role, const Expression& expression) {
    if (reads_ == nullptr || (role != FieldRole::kArgs && role != FieldRole::kArgument && role != FieldRole::kResult))
      return;
    const Field field{.role = FieldRole::kMemory, .pointer_in = static_cast<uint32_t>(out_.layout.fields.size() - 1)};
    const uint32_t most = wishes_.max_text_bytes;
    if (reads_->texts.contains(name)) append(field, FieldKind::kText, "%s", call("str", expression, most));
    if (reads_->buffers.contains(name)) append(field, FieldKind::kBytes, "%r", call("buf", expression, most));
  }

  // What the pointers in a struct, which is the last field, lead to.
  void add_own_members(types::TypeId id, const Expression& expression) {
    const auto member = [this, expression](const std::string& name) { return build_.member(expression(), name); };
    add_members(id, member, 0, e_.types[id].size_bytes, wishes_.depth,
                static_cast<uint32_t>(out_.layout.fields.size() - 1));
  }

  ExprId number(const types::Type& type, const Expression& expression) const {
    syntax::TypeName name;
    name.name = type.is_signed ? "int64" : "uint64";
    return build_.cast(std::move(name), expression());
  }

  // FUNCTION(expression, size)
  ExprId call(std::string function, const Expression& expression, uint32_t size_bytes) const {
    return build_.call(std::move(function), {expression(), build_.number(size_bytes)});
  }

  void append(Field field, FieldKind kind, std::string_view format, ExprId value) {
    field.kind = kind;
    out_.layout.fields.push_back(std::move(field));
    out_.format += fmt::format(" {}", format);
    out_.values.push_back(value);
  }

  // What the pointer leads to, whose field is the last one or, as a member of a struct, lies in it. Text that may be an
  // output buffer is not there yet.
  void add_pointee(types::TypeId pointer, const Expression& expression, uint32_t offset_bytes, uint32_t depth,
                   bool may_be_text, std::optional<uint32_t> holder = {}) {
    if (depth == 0 || ++memory_fields_ > kMaxMemoryFields) return;
    const types::TypeId element = e_.types[pointer].element;
    if (e_.types[element].kind == Kind::kStruct) e_.kernel->complete(e_.types, element);
    const types::Type& type = e_.types[element];
    Field field{.role = FieldRole::kMemory,
                .pointer_in = holder.value_or(static_cast<uint32_t>(out_.layout.fields.size() - 1)),
                .offset_bytes = offset_bytes};
    if (type.kind == Kind::kInt && type.size_bytes == 1 && type.char_like && may_be_text) {
      append(std::move(field), FieldKind::kText, "%s", call("str", expression, wishes_.max_text_bytes));
    } else if (type.kind == Kind::kStruct && type.complete && type.size_bytes > 0) {
      const uint32_t size = copied_bytes(type);
      append(std::move(field), FieldKind::kBytes, "%r", call("buf", expression, size));
      const auto member = [this, expression](const std::string& name) { return build_.behind(expression(), name); };
      if (depth > 1)
        add_members(element, member, 0, size, depth - 1, static_cast<uint32_t>(out_.layout.fields.size() - 1));
    }
  }

  // The pointers in the first `size_bytes` of a struct, which is the field `holder`. `named`: its member of that name.
  void add_members(types::TypeId holder_type, const std::function<ExprId(const std::string&)>& named,
                   uint32_t base_bytes, uint32_t size_bytes, uint32_t depth, uint32_t holder) {
    const std::vector<types::Member> members = e_.types[holder_type].members;
    for (const types::Member& member : members) {
      const types::Type& type = e_.types[member.type];
      const uint32_t offset = base_bytes + member.offset_bytes();
      if (offset + type.size_bytes > size_bytes || member.bit_size > 0) continue;
      if (!is_read(e_.types[holder_type].name, member.name)) continue;
      const auto is_same = [&](const types::Member& each) { return &each != &member && each.name == member.name; };
      const bool is_ambiguous = !member.name.empty() && std::ranges::any_of(members, is_same);
      if (is_ambiguous) continue;  // only a file that lies has two of one name
      const auto inner = [this, named, name = member.name](const std::string& below) {
        return name.empty() ? named(below) : build_.member(named(name), below);
      };
      if (type.kind == Kind::kStruct)
        add_members(member.type, inner, offset, size_bytes, depth, holder);
      else if (type.kind == Kind::kPointer && !member.name.empty())
        add_pointee(
            member.type, [named, name = member.name] { return named(name); }, offset, depth, true, holder);
    }
  }

  run::Environment& e_;
  kernel::TypeDescriber& describer_;
  const RecordWishes& wishes_;
  const ProbeReads* reads_;
  const Build& build_;
  Group& out_;
  size_t memory_fields_ = 0;
};

class RecordScriptWriter {
 public:
  RecordScriptWriter(run::Environment& environment, const RecordWishes& wishes)
      : e_(environment), wishes_(wishes), describer_(environment.types, *environment.kernel) {}

  // `at`: where the user has typed it. `is_of_script`: it is an attach point of a script of --for.
  Status add(const std::vector<std::string>& parts, source::Span at, bool is_of_script) {
    build_.span = at;
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
    for (const source::Diagnostic& each : ignored.all())
      if (run::is_about_returns(each)) warnings_.push_back(fmt::format("{} ({})", each.message, each.hint));
    const std::string given = fmt::format("{}", fmt::join(names, ":"));
    std::map<Place, const spec::BoundProbe*> plain;
    for (const spec::BoundProbe& each : all) plain.emplace(place_of(each), &each);
    for (const spec::BoundProbe& each : bound) {
      if (!is_asked_for(each, is_of_script)) continue;
      const auto same = plain.find(place_of(each));
      const bool needs_types = same == plain.end() || reads_types(reads_of(each.probe));
      add_probe(*provider, each, needs_types ? each : *same->second, true, given);
    }
    // A line may be at other addresses, depending on what is read there.
    const std::set<std::string> known = names_;
    for (const spec::BoundProbe& each : all)
      if (is_asked_for(each, is_of_script) && (each.probe.number == 0 || !known.contains(each.probe.name)))
        add_probe(*provider, each, each, false, given);
    return {};
  }

  Result<RecordScript> finish() {
    if (refused_) return tl::unexpected(*refused_);
    RecordScript out;
    out.warnings = std::move(warnings_);
    // Each action may be a program of its own.
    const size_t most = std::max<size_t>(count_, 1024);
    build_.config("max_strlen", build_.number(longest_read_bytes()));
    build_.config("print_maps_on_exit", build_.truth(false));
    build_.config("max_probes", build_.number(most));
    build_.config("max_bpf_progs", build_.number(most));
    out.parents = e_.kernel->find_struct(e_.types, "task_struct").valid() ? wishes_.parents : 0;
    for (size_t i = 0; i < groups_.size(); ++i) {
      Group& group = groups_[i];
      build_.span = group.points.front().span;
      build_.action(std::move(group.points), {build_.run(printed(group, i, out.parents))});
      script_.probes.push_back(std::move(group.bound));
      out.layouts.push_back(std::move(group.layout));
    }
    out.script = std::move(script_);
    describe_tasks();
    out.types = describer_.take();
    out.probes = std::move(probes_);
    return out;
  }

 private:
  using Place = decltype(program::location_of(program::Probe()));
  static Place place_of(const spec::BoundProbe& bound) { return program::location_of(bound.probe); }

  // The call of printf() of a group.
  ExprId printed(const Group& group, size_t index, uint32_t parents) const {
    std::string format = fmt::format("{}{} %s %d %d %d %d %d %d %d %s", kRecordMark, index);
    for (uint32_t i = 0; i < parents; ++i) format += " %d %s";
    std::vector<ExprId> arguments = {build_.text(format + group.format)};
    for (const char* name : {"probe", "nsecs", "cpu", "pid", "tid", "uid", "gid", "cgroup", "comm"})
      arguments.push_back(build_.name(name));
    const auto parent = [&](uint32_t generation) {
      ExprId out = build_.name("curtask");
      for (uint32_t i = 0; i < generation; ++i) out = build_.behind(out, "real_parent");
      return out;
    };
    for (uint32_t i = 0; i < parents; ++i) {
      arguments.push_back(build_.call("ppid", {parent(i)}));
      arguments.push_back(build_.call("pcomm", {parent(i)}));
    }
    arguments.insert(arguments.end(), group.values.begin(), group.values.end());
    return build_.call("printf", std::move(arguments));
  }

  std::vector<spec::BoundProbe> bind(const spec::Provider& provider, const std::vector<std::string>& parts,
                                     bool has_types, bool has_locals, source::Diagnostics& diagnostics) {
    const spec::Uses uses{.args = has_types, .locals = has_locals, .retval = has_types};
    return run::bind_probes(e_, e_.config, provider, parts, uses, diagnostics);
  }

  // A wildcard of a script stands for the probes that it has live.
  bool is_asked_for(const spec::BoundProbe& bound, bool is_of_script) const {
    return !is_of_script || wishes_.reads->probes.contains(bound.probe.name);
  }

  // Whether a script reads what debug information tells.
  static bool reads_types(const ProbeReads* reads) {
    const auto is_of_types = [](const std::string& field) { return !field.starts_with("arg"); };
    return reads == nullptr || reads->all_arguments || reads->all_locals || !reads->locals.empty() ||
           std::ranges::any_of(reads->fields, is_of_types);
  }

  // `used`: the probe as it is attached; the same as `bound`, or without the types, which take programs of their own.
  // The names in programs are not looked for again: a name need not be one that an attach point can have.
  void add_probe(const spec::Provider& provider, const spec::BoundProbe& bound, const spec::BoundProbe& used,
                 bool has_types, const std::string& given) {
    const bool is_in_program = provider.find_type != nullptr;
    const bool is_new_name = names_.insert(bound.probe.name).second;
    const bool is_new = is_in_program ? places_.emplace(bound.probe.name, place_of(bound)).second : is_new_name;
    if (!is_new) return;
    const ProbeReads* reads = reads_of(bound.probe);
    const std::string of_script = reads != nullptr ? bound.probe.name : "";
    const ShareKey key(provider.name, bound.share, of_script, has_types);
    auto known = by_share_.find(key);
    if (known == by_share_.end()) known = by_share_.emplace(key, group_of(provider, bound, has_types, reads)).first;
    const size_t index = known->second;
    const std::vector<std::string> parts = parts_of(bound.probe);
    groups_[index].points.push_back(build_.attach_point(provider.name, parts));
    if (is_in_program) groups_[index].bound.push_back(used);
    ++count_;
    if (probes_of_layouts_.emplace(bound.probe.name, index).second)
      probes_.push_back({std::string(provider.name), bound.probe.name, parts, given, bound.probe.target,
                         bound.probe.function, static_cast<uint32_t>(index)});
  }

  // The parts of the name behind the provider, where they can be told apart: what is between the file and the function
  // is the provider of a USDT probe, and names have colons of their own.
  static std::vector<std::string> parts_of(const program::Probe& probe) {
    const std::string_view name = probe.name;
    const std::string before = fmt::format("{}:{}:", probe.provider, probe.target);
    const std::string behind = ":" + probe.function;
    if (probe.target.find('/') != std::string::npos && !probe.function.empty() && name.starts_with(before)) {
      if (name.substr(before.size()) == probe.function) return {probe.target, probe.function};
      const std::string_view rest = name.substr(before.size());
      if (rest.ends_with(behind))
        return {probe.target, std::string(rest.substr(0, rest.size() - behind.size())), probe.function};
    }
    const std::vector<std::string> parts = run::split_attach_point(probe.name);
    return {parts.begin() + 1, parts.end()};
  }

  const ProbeReads* reads_of(const program::Probe& probe) const {
    if (!wishes_.reads) return nullptr;
    const auto found = wishes_.reads->probes.find(probe.name);
    return found == wishes_.reads->probes.end() ? nullptr : &found->second;
  }

  // The index of the group whose layout and values the probe has.
  size_t group_of(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types,
                  const ProbeReads* reads) {
    const spec::Uses uses{.args = has_types, .locals = has_types && reads_locals(), .retval = has_types};
    const spec::ProbeContext context = run::context_of(e_, provider, bound, uses);
    Group group;
    group.layout.points_to_user_space = context.pointers == types::AddressSpace::kUser;
    group.layout.has_kernel_names = true;
    group.layout.has_user_names = provider.find_type != nullptr || (reads != nullptr && !reads->symbols.empty());
    group.is_bound = provider.find_type != nullptr;
    FieldWriter fields(e_, describer_, wishes_, reads, build_, group);
    std::set<std::string> names;
    for (const spec::ContextField& field : context.args)
      if (!field.name.empty() && names.insert(field.name).second)
        fields.add(field, FieldRole::kArgs, member_of("args", field.name));
      else
        fields.leave_out(field.name);
    const size_t words = context.args.empty() ? context.arguments.size() : context.args.size();
    for (size_t i = 0; i < std::min(words, context.arguments.size()); ++i)
      if (const spec::ContextField& field = context.arguments[i]; field.name.starts_with("arg"))
        fields.add(field, FieldRole::kArgument, [this, name = field.name] { return build_.name(name); });
    if (context.retval) fields.add(*context.retval, FieldRole::kResult, [this] { return build_.name("retval"); });
    if (reads != nullptr) add_reads_of_scripts(*reads, context, fields);
    if (wishes_.kernel_stack || (reads && reads->kernel_stack)) fields.add_stack(FieldRole::kKernelStack, "kstack");
    const bool is_read = reads != nullptr && !reads->user_stack.empty();
    if (wishes_.user_stack || is_read) fields.add_stack(FieldRole::kUserStack, is_read ? reads->user_stack : "ustack");
    longest_bytes_ = std::max(longest_bytes_, group.longest_bytes);
    for (const std::string& each : group.left_out) warnings_.push_back(fmt::format("{}: {}", bound.probe.name, each));
    for (const std::string& each : group.refused)
      if (!refused_)
        refused_ = Error{fmt::format("{}: {}", bound.probe.name, each), 0, "at most 16 KiB of a value are recorded"};
    const auto is_equal = [&](ExprId a, ExprId b) { return is_same(script_.ast, a, b); };
    const auto same = std::ranges::find_if(groups_, [&](const Group& each) {
      return each.is_bound == group.is_bound && each.layout == group.layout &&
             std::ranges::equal(each.values, group.values, is_equal);
    });
    if (same != groups_.end()) return static_cast<size_t>(same - groups_.begin());
    groups_.push_back(std::move(group));
    return groups_.size() - 1;
  }

  // args.NAME or locals.NAME
  Expression member_of(std::string_view holder, const std::string& name) const {
    return [this, holder, name] { return build_.member(build_.name(std::string(holder)), name); };
  }

  void add_reads_of_scripts(const ProbeReads& reads, const spec::ProbeContext& context, FieldWriter& fields) {
    for (const spec::ContextField& field : context.locals)
      if (reads.all_locals || reads.locals.contains(field.name))
        fields.add(field, FieldRole::kLocal, member_of("locals", field.name));
    for (const auto& [name, read] : reads.values) {
      const auto expression = [this, &read = read] { return copy(*read.ast, read.id, script_.ast); };
      fields.add({.name = name, .type = read.type, .recipe = {}}, FieldRole::kValue, expression);
    }
    for (const auto& [name, read] : reads.symbols) fields.add_symbol(name, copy(*read.ast, read.id, script_.ast));
  }

  bool reads_locals() const { return wishes_.reads && wishes_.reads->has_locals; }

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
    for (const auto& [name, bytes] : wishes_.reads->struct_bytes)
      out = std::max(out, std::min(bytes, kMaxRecordedBytes));
    for (const auto& [name, reads] : wishes_.reads->probes)
      for (const auto& [expression, read] : reads.values)
        if (e_.types[read.type].kind == Kind::kString) out = std::max(out, e_.types[read.type].size_bytes);
    return out;
  }

  static tl::unexpected<Error> nothing_there(const std::string& target, const source::Diagnostics& diagnostics) {
    if (!diagnostics.all().empty()) {
      const source::Diagnostic& first = diagnostics.all().front();
      return fail(first.message, 0, first.hint);
    }
    return fail(fmt::format("no probe matches `{}`", target), 0,
                run::can_read_tracefs() ? "espy -l lists probes" : "tracefs cannot be read");
  }

  run::Environment& e_;
  const RecordWishes& wishes_;
  kernel::TypeDescriber describer_;
  run::BuiltScript script_;
  Build build_{script_.ast, {}};  // with the place of the current target
  std::vector<Group> groups_;
  // By provider, share, the probe if a script reads it, and whether its types are known.
  using ShareKey = std::tuple<std::string_view, spec::Share, std::string, bool>;
  std::map<ShareKey, size_t> by_share_;  // indexes in `groups_`
  std::vector<recording::Probe> probes_;
  std::set<std::pair<std::string, size_t>> probes_of_layouts_;  // the names and layouts of `probes_`
  std::set<std::string> names_;
  std::set<std::pair<std::string, Place>> places_;  // of probes in programs: several can have one name
  size_t count_ = 0;                                // of places
  uint32_t longest_bytes_ = 0;                      // of the arrays and structs of all groups
  std::vector<std::string> warnings_;
  std::optional<Error> refused_;
};

}  // namespace

Result<RecordScript> write_record_script(std::span<const std::string> targets, const RecordWishes& wishes,
                                         run::Environment& environment) {
  RecordScriptWriter writer(environment, wishes);
  if (wishes.reads)
    for (const ScriptReads::Target& target : wishes.reads->targets)
      TRY_STATUS(writer.add(target.parts, target.span, true));
  for (const std::string& target : targets) {
    const source::Span typed{environment.sources.add("probe", target), 0, static_cast<uint32_t>(target.size())};
    TRY_STATUS(writer.add(run::split_attach_point(target), typed, false));
  }
  return writer.finish();
}

}  // namespace espy::record
