#include "cli/check_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/capabilities.h"
#include "check/check.h"
#include "compile/compile.h"
#include "ir/ir.h"

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

std::vector<ScriptProblem> problems_of(const source::Diagnostics& diagnostics, const source::Sources& sources) {
  std::vector<ScriptProblem> out;
  for (const source::Diagnostic& each : diagnostics.all()) {
    if (each.severity != source::Severity::kError) continue;
    std::string place;
    if (each.span.source.valid()) {
      const source::LineColumn at = sources.line_column(each.span.source, each.span.begin);
      place = fmt::format("{}:{}:{}", sources[each.span.source].name, at.line, at.column);
    }
    out.push_back({place, each.message, each.hint, source::render(each, sources)});
  }
  return out;
}

}  // namespace

Result<ScriptVerdict> check_script(const Options& options, Environment& e, check::ScriptFiles* recorded) {
  ScriptVerdict out;
  const source::SourceId source = TRY(read_script(options, e.sources));
  out.name = e.sources[source].name;
  out.script = e.sources[source].text;
  check::CheckRequest request = e.check_request();
  request.recorded = recorded;
  syntax::Ast ast = parse_script(source, request);
  out.problems = problems_of(e.diagnostics, e.sources);
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
  out.problems = problems_of(e.diagnostics, e.sources);
  if (!out.problems.empty()) return out;
  const compile::Compiled compiled = compile::compile(checked, e.types, *e.kernel);
  out.problems = problems_of(compiled.diagnostics, e.sources);
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

Result<std::unique_ptr<Environment>> CheckedKernels::environment(size_t index, const Options& options,
                                                                 const Host& host) const {
  if (snapshots_.empty()) return host.open(options);
  return make_environment(options, load::open_linux(), TRY(snapshots_[index].kernel()));
}

}  // namespace espy::cli
