#include "cli/check_script.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "builtins/builtin_support.h"
#include "check/check.h"
#include "compile/compile.h"
#include "ir/ir.h"
#include "probes/probe_support.h"

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
  const std::string parameter = missing_parameter(text, options.config.arguments.positional);
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
    const bool is_unknown = each.id == probes::kNotKnown || (each.id == "no-tracefs" && !run::require_privileges());
    ScriptProblem problem{place, each.message, each.hint, source::render(each, sources), is_unknown};
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
  const source::SourceId source = TRY(run::read_script(options, e.sources));
  out.name = e.sources[source].name;
  out.script = e.sources[source].text;
  check::CheckRequest request = e.check_request();
  request.recorded = recorded;
  request.binding = spec::Binding::kForetell;
  syntax::Ast ast = run::parse_script(source, request);
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
  if (!snapshots_.empty())
    return run::make_environment(options, load::open_linux(), TRY(snapshots_[index].kernel(assume)));
  if (run::require_privileges()) return host.open(options);
  return run::make_environment(options, load::open_linux(),
                               TRY(kernel::open_kernel("/", {[](kernel::Feature) { return true; }})));
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
