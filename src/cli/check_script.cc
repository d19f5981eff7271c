#include "cli/check_script.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "builtins/builtin_support.h"
#include "check/check.h"
#include "check/walk.h"
#include "compile/compile.h"
#include "ir/ir.h"
#include "probes/probe_support.h"
#include "syntax/format_script.h"

namespace espy::cli {

namespace {

// The helpers that the program calls and the kernel does not have, by the kernel's enum bpf_func_id. Without BTF
// nothing is known of them.
std::vector<std::string_view> missing_helpers(const program::Program& program, Environment& e) {
  constexpr uint8_t kCall = 0x85;  // BPF_JMP | BPF_CALL; of a helper if no register is named
  std::vector<std::string_view> out;
  const auto is_there = [&](std::string_view name) {
    return e.kernel->find_enumerator(e.types, fmt::format("BPF_FUNC_{}", name)).has_value();
  };
  if (!is_there("map_lookup_elem")) return out;
  for (const program::ProgramId id : program.programs.ids()) {
    for (const program::BpfInsn& each : program.programs[id].code) {
      if (each.code != kCall || each.registers >> 4 != 0) continue;
      const std::string_view name = ir::info(static_cast<ir::Helper>(each.imm)).name;
      if (std::ranges::find(out, name) == out.end() && !is_there(name)) out.push_back(name);
    }
  }
  return out;
}

// "vfs_read" of "kprobe:vfs_read+4".
std::string last_part(std::string_view point) {
  point = point.substr(point.rfind(':') + 1);
  return std::string(point.substr(0, point.find('+')));
}

// "$2", the first parameter in the text that is not among the `given` ones; "" if there is none.
std::string missing_parameter(std::string_view text, const std::vector<std::string>& given) {
  for (size_t at = text.find('$'); at != text.npos; at = text.find('$', at + 1)) {
    const std::string_view digits = text.substr(at + 1, text.find_first_not_of("0123456789", at + 1) - at - 1);
    const auto number = parse_int(digits);
    if (!number || *number < 1) continue;
    if (std::cmp_greater(*number, given.size())) return fmt::format("${}", digits);
  }
  return "";
}

// What a parameter decides that is not given is not known. A refusal stands behind a condition, which is elsewhere.
source::Diagnostic with_doubt(source::Diagnostic said, const source::Sources& sources, const Options& options) {
  if (!options.command->takes_script_arguments || !said.span.source.valid()) return said;
  const bool is_refusal = said.id == builtins::kRefusedByScript;
  const std::string_view text = is_refusal ? std::string_view(sources[said.span.source].text) : sources.text(said.span);
  const std::string parameter = missing_parameter(text, options.config.positional);
  if (parameter.empty()) return said;
  said.hint = fmt::format("`espy check {} -- ARGUMENTS` gives it", sources[said.span.source].name);
  said.message = fmt::format("not known: `{}` is not given, and decides this: {}", parameter, said.message);
  said.id = probes::kNotKnown;
  return said;
}

std::vector<ScriptProblem> problems_of(const source::Diagnostics& diagnostics, const source::Sources& sources,
                                       const Options& options) {
  std::vector<ScriptProblem> out;
  for (const source::Diagnostic& said : diagnostics.all()) {
    if (said.severity != source::Severity::kError) continue;
    const source::Diagnostic each = with_doubt(said, sources, options);
    std::string place;
    if (each.span.source.valid()) {
      const source::LineColumn at = sources.line_column(each.span.source, each.span.begin);
      place = fmt::format("{}:{}:{}", sources[each.span.source].name, at.line, at.column);
    }
    ScriptProblem problem{place, each.message, each.hint, source::render(each, sources), each.id == probes::kNotKnown};
    if (each.id == "no-such-probe") problem.missing = last_part(sources.text(each.span));
    out.push_back(std::move(problem));
  }
  return out;
}

ScriptProblem unknown_feature(kernel::Feature feature) {
  const auto rows = kernel::feature_rows();
  const auto row = std::ranges::find(rows, feature, &kernel::FeatureRow::feature);
  return {"",
          fmt::format(
              "whether that kernel has `{}` is not known: the snapshot was taken without the rights to try it, or by "
              "an espy that did not ask for it",
              row->name),
          "", "", true};
}

}  // namespace

Result<ScriptVerdict> check_script(const Options& options, Environment& e, check::ScriptFiles* recorded) {
  ScriptVerdict out;
  const source::SourceId source = TRY(read_script(options, e.sources));
  out.name = e.sources[source].name;
  out.script = e.sources[source].text;
  check::CheckRequest request = e.check_request();
  request.recorded = recorded;
  request.is_foretold = true;
  syntax::Ast ast = parse_script(source, request);
  out.problems = problems_of(e.diagnostics, e.sources, options);
  out.is_unreadable = !out.problems.empty();
  if (out.is_unreadable) return out;
  if (ast.actions.empty()) {
    out.is_unreadable = true;
    out.problems = {{"", "the program has no probes", "", ""}};
    return out;
  }
  const check::Checked checked = check::check(std::move(ast), request);
  out.options = checked.options;
  const auto is_about_files = [](const source::Diagnostic& each) { return each.id.find("import") != each.id.npos; };
  out.is_unreadable = std::ranges::any_of(e.diagnostics.all(), is_about_files);
  out.problems = problems_of(e.diagnostics, e.sources, options);
  if (!out.problems.empty()) return out;
  const compile::Compiled compiled = compile::compile(checked, e.types, *e.kernel);
  out.problems = problems_of(compiled.diagnostics, e.sources, options);
  for (const std::string_view helper : missing_helpers(compiled.program, e))
    out.problems.push_back(
        {"", fmt::format("this kernel lacks the helper `{}`, which the script needs", helper), "", ""});
  out.capabilities = check::capabilities_of(checked, e.registry);
  return out;
}

Status CheckedKernels::use(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) snapshots_.push_back(TRY(kernel::Snapshot::of(path)));
  return {};
}

size_t CheckedKernels::size() const { return std::max<size_t>(snapshots_.size(), 1); }

std::string CheckedKernels::name(size_t index) const {
  return snapshots_.empty() ? "this kernel" : snapshots_[index].name();
}

std::string CheckedKernels::release(size_t index) const {
  if (!snapshots_.empty()) return snapshots_[index].name();
  utsname name = {};
  return ::uname(&name) == 0 ? name.release : "";
}

Result<std::unique_ptr<Environment>> CheckedKernels::environment(
    size_t index, const Options& options, const Host& host, const std::function<bool(kernel::Feature)>& assume) const {
  if (snapshots_.empty()) return host.open(options);
  return make_environment(options, load::open_linux(), TRY(snapshots_[index].kernel(assume)));
}

Result<std::vector<ScriptProblem>> CheckedKernels::problems(size_t index, const Options& options,
                                                            const Host& host) const {
  const auto problems_if =
      [&](const std::function<bool(kernel::Feature)>& assume) -> Result<std::vector<ScriptProblem>> {
    const auto environment = TRY(this->environment(index, options, host, assume));
    return TRY(check_script(options, *environment)).problems;
  };
  std::vector<ScriptProblem> with_all = TRY(problems_if({}));
  const auto unknown = snapshots_.empty() ? std::vector<kernel::Feature>() : TRY(snapshots_[index].unknown_features());
  if (unknown.empty() || !with_all.empty()) return with_all;
  if (TRY(problems_if([](kernel::Feature) { return false; })).empty()) return with_all;
  std::vector<ScriptProblem> out;
  for (const kernel::Feature feature : unknown) {
    if (TRY(problems_if([&](kernel::Feature each) { return each != feature; })).empty()) continue;
    out.push_back(unknown_feature(feature));
  }
  if (out.empty())
    out.push_back({"", "it needs one of several features, which are not known of that kernel", "", "", true});
  return out;
}

namespace {

using types::Kind;

constexpr std::string_view kLocals = "locals";

class ReadsFinder {
 public:
  ReadsFinder(std::shared_ptr<const syntax::Ast> ast, const check::Unit& unit, const types::Types& types,
              ScriptReads& out)
      : shared_ast_(std::move(ast)), ast_(*shared_ast_), unit_(unit), types_(types), out_(out) {}

  ProbeReads find() {
    const auto visit = [&](syntax::ExprId id) { add(id); };
    check::walk(ast_, unit_.action->predicate, visit);
    check::walk(ast_, unit_.action->body, visit);
    return std::move(reads_);
  }

 private:
  void add(syntax::ExprId id) {
    const check::ExprFact& fact = unit_.fact(id);
    if (is_in_value_.contains(id)) return;
    if (fact.type.valid() && is_kept(id)) return add_value(id, fact.type);
    if (fact.field != nullptr) (is_local(id) ? reads_.locals : reads_.fields).insert(fact.field->name);
    if (const auto* call = ast_.get<syntax::Call>(id)) add_memory(fact, *call);
    if (!fact.type.valid()) return;
    const types::Type& type = types_[fact.type];
    if (type.kind == Kind::kKernelStack) reads_.kernel_stack = true;
    if (type.kind == Kind::kUserStack && fact.builtin != nullptr) reads_.user_stack = spec::name_of(*fact.builtin);
    const bool is_symbol = type.kind == Kind::kKernelSymbol || type.kind == Kind::kUserSymbol;
    if (is_symbol && ast_.get<syntax::Call>(id) != nullptr && is_of_event(id))
      reads_.symbols.emplace(format(ast_, id), ReadExpression{fact.type, shared_ast_, id});
    const auto* name = ast_.get<syntax::Name>(id);
    if (name != nullptr && type.kind == Kind::kRecord && !bases_.contains(id))
      (name->name == kLocals ? reads_.all_locals : reads_.all_arguments) = true;
    if (const auto* access = ast_.get<syntax::Access>(id)) add_member(id, *access);
  }

  // What str() or buf() reads at an argument, also at one with a cast.
  void add_memory(const check::ExprFact& fact, const syntax::Call& call) {
    const bool is_text = fact.builtin != nullptr && fact.builtin->reads_text_at;
    const bool is_buffer = fact.type.valid() && types_[fact.type].kind == Kind::kBuffer;
    if (call.arguments.empty() || (!is_text && !is_buffer)) return;
    syntax::ExprId address = call.arguments[0];
    while (const auto* cast = ast_.get<syntax::Cast>(address)) address = cast->operand;
    const spec::ContextField* field = unit_.fact(address).field;
    if (field != nullptr && !is_local(address)) (is_text ? reads_.texts : reads_.buffers).insert(field->name);
  }

  bool is_local(syntax::ExprId id) const {
    const auto* access = ast_.get<syntax::Access>(id);
    const auto* base = access != nullptr ? ast_.get<syntax::Name>(access->base) : nullptr;
    return base != nullptr && base->name == kLocals;
  }

  // Whether this is a value that recordings have only if it is asked for, or a member behind one.
  bool is_kept(syntax::ExprId id) const {
    if (const auto* access = ast_.get<syntax::Access>(id)) return is_kept(access->base);
    const spec::Builtin* builtin = unit_.fact(id).builtin;
    const auto* call = ast_.get<syntax::Call>(id);
    if (builtin == nullptr || builtin->kept == spec::Kept::kNo || !is_of_event(id)) return false;
    return builtin->kept == spec::Kept::kYes || (call != nullptr && !call->arguments.empty());
  }

  // Whether the expression has the same value wherever it is evaluated for one event.
  bool is_of_event(syntax::ExprId root) const {
    bool out = true;
    const auto visit = [&](syntax::ExprId id) {
      const check::ExprFact& fact = unit_.fact(id);
      const auto* name = ast_.get<syntax::Name>(id);
      const bool is_value = ast_.get<syntax::IntegerLiteral>(id) || ast_.get<syntax::StringLiteral>(id) ||
                            ast_.get<syntax::BoolLiteral>(id) || ast_.get<syntax::Access>(id);
      const bool is_call = ast_.get<syntax::Call>(id) != nullptr && fact.function < 0;
      out &= is_value || is_call || (name != nullptr && !fact.replacement.valid());
    };
    check::walk(ast_, root, visit);
    return out;
  }

  void add_value(syntax::ExprId id, types::TypeId type) {
    reads_.values.emplace(format(ast_, id), ReadExpression{type, shared_ast_, id});
    check::walk(ast_, id, [&](syntax::ExprId part) { is_in_value_.insert(part); });
  }

  void add_member(syntax::ExprId id, const syntax::Access& access) {
    bases_.insert(access.base);
    // A text behind the member is one pointer further.
    out_.depth = std::max(out_.depth, pointers_in(id) + 1);
    const types::TypeId holder = pointee(unit_.fact(access.base).type);
    if (!holder.valid() || types_[holder].kind != Kind::kStruct) return;
    const auto member = types::find_member(types_, holder, access.name);
    if (!member) return;
    out_.members.emplace(types_[holder].name, access.name);
    uint32_t& bytes = out_.struct_bytes[types_[holder].name];
    bytes = std::max(bytes, (member->offset_bits + 7) / 8 + types_[member->type].size_bytes);
  }

  types::TypeId pointee(types::TypeId type) const {
    if (!type.valid() || types_[type].kind != Kind::kPointer) return type;
    return types_[type].element;
  }

  // How many pointers a chain of members follows.
  uint32_t pointers_in(syntax::ExprId id) const {
    const auto* access = ast_.get<syntax::Access>(id);
    if (access == nullptr) return 0;
    const types::TypeId base = unit_.fact(access->base).type;
    const bool is_pointer = base.valid() && types_[base].kind == Kind::kPointer;
    return pointers_in(access->base) + (is_pointer ? 1 : 0);
  }

  const std::shared_ptr<const syntax::Ast> shared_ast_;
  const syntax::Ast& ast_;
  const check::Unit& unit_;
  const types::Types& types_;
  ScriptReads& out_;
  ProbeReads reads_;
  std::set<syntax::ExprId> bases_;        // of members
  std::set<syntax::ExprId> is_in_value_;  // parts of reads_.values
};

void merge(ProbeReads& into, const ProbeReads& from) {
  into.all_arguments |= from.all_arguments;
  into.fields.insert(from.fields.begin(), from.fields.end());
  into.texts.insert(from.texts.begin(), from.texts.end());
  into.buffers.insert(from.buffers.begin(), from.buffers.end());
  into.locals.insert(from.locals.begin(), from.locals.end());
  into.all_locals |= from.all_locals;
  into.values.insert(from.values.begin(), from.values.end());
  into.symbols.insert(from.symbols.begin(), from.symbols.end());
  into.kernel_stack |= from.kernel_stack;
  if (into.user_stack.empty()) into.user_stack = from.user_stack;
}

// Attach points of probes that recordings have anyway are left out.
void add_targets(const syntax::Action& action, const spec::Registry& registry, ScriptReads& out) {
  for (const syntax::AttachPoint& point : action.attach_points) {
    const spec::Provider* provider = registry.find_provider(point.provider.text);
    if (provider == nullptr) continue;
    out.has_timers |= provider->timer != spec::Timer::kNone;
    if (provider->attach == nullptr || provider->timer == spec::Timer::kOnOneCpu) continue;
    std::vector<std::string> target = {std::string(provider->name)};
    for (const syntax::AttachPart& part : point.parts) target.push_back(part.text);
    if (std::ranges::find(out.targets, target, &ScriptReads::Target::parts) == out.targets.end())
      out.targets.push_back({std::move(target), point.span});
  }
}

}  // namespace

Status add_reads(const Options& options, Environment& environment, ScriptReads& out) {
  const source::SourceId script = TRY(read_script(options, environment.sources));
  check::CheckRequest request = environment.check_request();
  syntax::Ast ast = parse_script(script, request);
  const auto whole = std::make_shared<check::Checked>(check::check(std::move(ast), request));
  const check::Checked& checked = *whole;
  if (report(environment.diagnostics, environment.sources, options))
    return fail(fmt::format("{} cannot be run, and so not be recorded for", options.file.value_or("the script")));
  for (const syntax::Action& action : checked.ast.actions) add_targets(action, environment.registry, out);
  for (const check::Unit& unit : checked.units) {
    if (unit.action == nullptr) continue;
    const std::shared_ptr<const syntax::Ast> tree(whole, &whole->ast);
    const ProbeReads reads = ReadsFinder(tree, unit, environment.types, out).find();
    out.has_locals |= reads.all_locals || !reads.locals.empty();
    for (const program::ProbeId id : unit.probes) merge(out.probes[checked.probes[id].name], reads);
  }
  return {};
}

namespace {

// The types of the arguments and of the result. "" if there is no pointer to a struct among the arguments: too many
// functions have the same.
std::string shape_of(const kernel::FunctionPrototype& function, const types::Types& types) {
  std::string out = probes::c_spelling(types, function.result);
  bool has_struct = false;
  for (const types::Member& each : function.parameters) {
    const types::Type& type = types[each.type];
    has_struct |=
        type.kind == types::Kind::kPointer && type.element && types[type.element].kind == types::Kind::kStruct;
    out += "," + probes::c_spelling(types, each.type);
  }
  return has_struct ? out : "";
}

std::set<std::string> names_of(const std::vector<std::string>& listed) {
  std::set<std::string> out;
  for (const std::string& each : listed) out.insert(probes::split_module(each).name);
  return out;
}

}  // namespace

Result<Environment*> Elsewhere::environment(size_t index) {
  auto& known = environments_[index];
  if (!known) known = TRY(kernels_.environment(index, options_, host_));
  return known.get();
}

std::string Elsewhere::with_same_arguments(const std::string& function, Environment& lacking, Environment& having) {
  constexpr size_t kShortestWord = 4, kMostNames = 4;
  const auto prototype = having.kernel->find_function(having.types, function, "vmlinux");
  const std::string shape = prototype ? shape_of(*prototype, having.types) : "";
  if (shape.empty()) return "";
  const std::set<std::string> theirs = names_of(having.kernel->functions("*"));
  std::set<std::string> found;
  for (const std::string_view word : split(function, '_')) {
    if (word.size() < kShortestWord) continue;
    for (const auto& each : lacking.kernel->find_functions(&lacking.types, fmt::format("*{}*", word), "vmlinux"))
      if (!theirs.contains(each.name) && shape_of(each, lacking.types) == shape)
        found.insert(fmt::format("`{}`", each.name));
  }
  if (found.empty() || found.size() > kMostNames) return "";
  return join(std::vector<std::string>(found.begin(), found.end()), ", ");
}

// The name of a snapshot is its release, which its author has chosen.
std::string Elsewhere::inlined_into(const std::string& function, size_t lacking) {
  constexpr size_t kMostNames = 8;
  const std::string release = kernels_.release(lacking);
  if (release.find('/') != release.npos) return "";
  std::vector<std::string> paths = {fmt::format("/lib/modules/{}/build/vmlinux", release),
                                    fmt::format("/boot/vmlinux-{}", release)};
  for (const std::string& directory : options_.symbols.debug_directories) {
    paths.push_back(fmt::format("{}/boot/vmlinux-{}", directory, release));
    paths.push_back(fmt::format("{}/lib/modules/{}/vmlinux", directory, release));
  }
  for (const std::string& path : paths) {
    const auto file = symbols::ElfFile::open(path, options_.symbols.debug_directories);
    if (!file) continue;
    const auto info = file->debug_info();
    if (!info) continue;
    std::set<std::string> callers;
    for (const symbols::Statement& each : (*info)->inlined_copies(function))
      if (!each.inlined_into.empty()) callers.insert(fmt::format("`{}`", each.inlined_into));
    if (callers.empty()) continue;
    const std::vector<std::string> names(callers.begin(), callers.end());
    const size_t shown = std::min(names.size(), kMostNames);
    return fmt::format("it is inlined into {}{}, says {}", join(std::span(names).first(shown), ", "),
                       names.size() > shown ? fmt::format(" and {} others", names.size() - shown) : "", path);
  }
  return "";
}

Result<std::string> Elsewhere::tell(const std::string& function, size_t lacking) {
  const std::string inlined = inlined_into(function, lacking);
  const std::string others = TRY(tell_of_others(function, lacking));
  return inlined + (inlined.empty() || others.empty() ? "" : "; ") + others;
}

Result<std::string> Elsewhere::tell_of_others(const std::string& function, size_t lacking) {
  std::vector<std::string> names;
  std::string prototype, alike;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (i == lacking) continue;
    Environment& having = *TRY(environment(i));
    if (having.kernel->functions(function).empty()) continue;
    names.push_back(kernels_.name(i));
    if (prototype.empty()) prototype = having.kernel->c_prototype(function, "vmlinux").value_or("");
    if (alike.empty()) alike = with_same_arguments(function, *TRY(environment(lacking)), having);
  }
  if (names.empty()) return "";
  std::string out = fmt::format("{} {} it", join(names, ", "), names.size() == 1 ? "has" : "have");
  if (!prototype.empty()) out += fmt::format(", as `{}`", prototype);
  if (!alike.empty()) out += fmt::format("; with the same arguments, and only here: {}", alike);
  return out;
}

}  // namespace espy::cli
