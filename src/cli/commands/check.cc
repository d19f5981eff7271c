// espy check: whether scripts run on a kernel, this one or those of snapshots. Nothing is loaded.
#include "check/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/printable.h"
#include "base/strings.h"
#include "cli/command.h"
#include "compile/compile.h"
#include "ir/ir.h"
#include "kernel/snapshot.h"
#include "output/json.h"

namespace espy::cli {

namespace {

struct CheckOptions : CommandOptions {
  std::vector<std::string> kernels;  // files of --on; none: the running kernel
};

Status add_kernel(Options& options, std::string_view path) {
  static_cast<CheckOptions&>(*options.own).kernels.emplace_back(path);
  return {};
}

constexpr OptionRow kRows[] = {
    {0, "on", "KERNEL", "check for this kernel, a file that espy snapshot has written (may be given again)",
     add_kernel},
};

// What keeps a script from running on a kernel.
struct Problem {
  std::string place, message, hint;
  std::string text;  // all of it, with the line of the script
};

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

class ScriptChecker {
 public:
  ScriptChecker(const Options& options, Environment& environment) : options_(options), e_(environment) {}

  // Returns what keeps the script from running on the environment's kernel; nothing if it runs there.
  Result<std::vector<Problem>> check(const std::string& script) {
    Options with_file = options_;
    with_file.program_text.reset();
    with_file.file = script;
    const source::SourceId source = TRY(read_script(with_file, e_.sources));
    check::CheckRequest request = e_.check_request();
    syntax::Ast ast = parse_script(source, request);
    if (e_.diagnostics.has_errors()) return problems(e_.diagnostics);
    if (ast.actions.empty()) return std::vector<Problem>{{"", "the program has no probes", "", ""}};
    const check::Checked checked = check::check(std::move(ast), request);
    if (e_.diagnostics.has_errors()) return problems(e_.diagnostics);
    const compile::Compiled compiled = compile::compile(checked, e_.types, *e_.kernel);
    if (compiled.diagnostics.has_errors()) return problems(compiled.diagnostics);
    std::vector<Problem> out;
    for (const std::string_view helper : missing_helpers(compiled.program, e_))
      out.push_back({"", fmt::format("this kernel lacks the helper `{}`, which the script needs", helper), "", ""});
    return out;
  }

 private:
  std::vector<Problem> problems(const source::Diagnostics& diagnostics) const {
    std::vector<Problem> out;
    for (const source::Diagnostic& each : diagnostics.all()) {
      if (each.severity != source::Severity::kError) continue;
      std::string place;
      if (each.span.source.valid()) {
        const source::LineColumn at = e_.sources.line_column(each.span.source, each.span.begin);
        place = fmt::format("{}:{}:{}", e_.sources[each.span.source].name, at.line, at.column);
      }
      out.push_back({place, each.message, each.hint, source::render(each, e_.sources)});
    }
    return out;
  }

  const Options& options_;
  Environment& e_;
};

struct Cell {
  std::string script, kernel;
  std::vector<Problem> problems;
};

std::string json_of(const Cell& cell) {
  std::vector<std::string> problems;
  for (const Problem& each : cell.problems)
    problems.push_back(fmt::format(R"({{"place": {}, "message": {}, "hint": {}}})", output::quoted(each.place),
                                   output::quoted(each.message), output::quoted(each.hint)));
  return fmt::format(R"({{"type": "check", "data": {{"script": {}, "kernel": {}, "runs": {}, "problems": [{}]}}}})",
                     output::quoted(cell.script), output::quoted(cell.kernel), cell.problems.empty(),
                     fmt::join(problems, ", "));
}

// A row for each script, a column for each kernel; then what is missing.
std::string table_of(const std::vector<Cell>& cells, size_t columns) {
  size_t width = 0;
  for (const Cell& cell : cells) width = std::max(width, cell.script.size());
  std::string out = fmt::format("{:<{}}", "", width);
  for (size_t i = 0; i < columns; ++i) out += "  " + cells[i].kernel;
  std::string reasons;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (i % columns == 0) out += fmt::format("\n{:<{}}", cell.script, width);
    const bool is_last = i % columns == columns - 1;
    out += fmt::format("  {:<{}}", cell.problems.empty() ? "runs" : "no", is_last ? 0 : cell.kernel.size());
    if (!cell.problems.empty()) reasons += fmt::format("\n{} on {}:\n", cell.script, cell.kernel);
    for (const Problem& each : cell.problems)
      reasons += each.text.empty() ? fmt::format("{}\n", each.message) : each.text;
  }
  return out + "\n" + reasons;
}

// The kernels of --on, or the one that runs.
class Kernels {
 public:
  Kernels(const Options& options, const Host& host) : options_(options), host_(host) {}

  Status open(const std::vector<std::string>& paths) {
    if (paths.empty()) TRY_STATUS(require_privileges());  // its features are found by trying
    for (const std::string& path : paths) snapshots_.push_back(TRY(kernel::Snapshot::of(path)));
    return {};
  }

  size_t size() const { return std::max<size_t>(snapshots_.size(), 1); }
  std::string name(size_t index) const { return snapshots_.empty() ? "this kernel" : snapshots_[index].name(); }
  Result<std::unique_ptr<Environment>> environment(size_t index) const {
    if (snapshots_.empty()) return host_.open(options_);
    return make_environment(options_, load::open_linux(), TRY(snapshots_[index].kernel()));
  }

 private:
  const Options& options_;
  const Host& host_;
  std::vector<kernel::Snapshot> snapshots_;
};

Result<std::vector<Cell>> check_all(const Options& options, const Kernels& kernels) {
  std::vector<Cell> out;
  for (const std::string& script : options.names) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      const auto environment = TRY(kernels.environment(i));
      out.push_back({script, kernels.name(i), TRY(ScriptChecker(options, *environment).check(script))});
    }
  }
  return out;
}

int check_scripts(const Options& options, const Host& host) {
  Kernels kernels(options, host);
  if (const Status opened = kernels.open(static_cast<const CheckOptions&>(*options.own).kernels); !opened)
    return complain(opened.error());
  const auto cells = check_all(options, kernels);
  if (!cells) return complain(cells.error());
  std::string out;
  if (options.format == "json")
    for (const Cell& cell : *cells) out += json_of(cell) + "\n";
  else
    out = table_of(*cells, kernels.size());
  std::fputs(printable(out).c_str(), stdout);
  const bool all_run = std::ranges::all_of(*cells, [](const Cell& cell) { return cell.problems.empty(); });
  return all_run ? EXIT_SUCCESS : EXIT_FAILURE;
}

constexpr std::string_view kUsage[] = {"check [--on KERNEL]... FILE..."};
constexpr Example kExamples[] = {
    {"espy check --on KERNEL tools/*.bt", "which scripts run on the kernel of a snapshot, and what the others lack"}};

}  // namespace

extern const Command kCheck = {
    .word = "check",
    .operands = Operands::kNames,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<CheckOptions>()); },
    .usage = kUsage,
    .examples = kExamples,
    .run = check_scripts,
};

}  // namespace espy::cli
