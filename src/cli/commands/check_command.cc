// espy check: whether scripts run on a kernel, this one or those of snapshots. Nothing is loaded.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "base/strings.h"
#include "cli/check_script.h"
#include "cli/command.h"
#include "cli/tool_options.h"
#include "kernel/snapshot.h"
#include "lsp/server.h"
#include "output/json.h"
#include "run/environment.h"
#include "syntax/format_script.h"
#include "syntax/parser.h"

namespace espy::cli {

namespace {

constexpr int kExitUnknown = 2;  // of some it is not known, the others run

struct CheckOptions : CommandOptions {
  std::vector<std::string> kernels;  // files of --on; none: the running kernel
};

Status add_kernel(Options& options, std::string_view path) {
  static_cast<CheckOptions&>(*options.own).kernels.emplace_back(path);
  return {};
}

constexpr OptionRow kRows[] = {
    {0, "on", "KERNEL", "check for this kernel, a file of `espy snapshot`; may be repeated (the running kernel)",
     add_kernel},
};

struct Cell {
  std::string script, kernel;
  std::vector<ScriptProblem> problems;

  bool runs() const { return problems.empty(); }
  // What keeps it from running may be there.
  bool is_unknown() const { return !runs() && std::ranges::all_of(problems, &ScriptProblem::is_unknown); }
};

std::string json_of(const Cell& cell) {
  std::vector<std::string> problems;
  for (const ScriptProblem& each : cell.problems)
    problems.push_back(fmt::format(R"({{"place": {}, "message": {}, "hint": {}}})", json_string(each.place),
                                   json_string(each.message), json_string(each.hint)));
  const std::string_view runs = cell.runs() ? "true" : cell.is_unknown() ? "null" : "false";
  return fmt::format(R"({{"type": "check", "data": {{"script": {}, "kernel": {}, "runs": {}, "problems": [{}]}}}})",
                     json_string(cell.script), json_string(cell.kernel), runs, fmt::join(problems, ", "));
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
    const std::string_view runs = cell.runs() ? "runs" : cell.is_unknown() ? "not known" : "no";
    out += fmt::format("  {:<{}}", runs, is_last ? 0 : cell.kernel.size());
    if (!cell.problems.empty()) reasons += fmt::format("\n{} on {}:\n", cell.script, cell.kernel);
    for (const ScriptProblem& each : cell.problems)
      reasons += each.text.empty() ? fmt::format("{}\n", each.message) : each.text;
  }
  return out + "\n" + reasons;
}

// Adds to the functions that are missing what the other kernels tell of them.
Status compare(std::span<Cell> row, const CheckedKernels& kernels, const Options& options, const Host& host) {
  Elsewhere elsewhere(kernels, options, host);
  for (size_t i = 0; i < row.size(); ++i) {
    for (ScriptProblem& each : row[i].problems) {
      const std::string told = each.missing.empty() ? "" : TRY(elsewhere.tell(each.missing, i));
      if (told.empty()) continue;
      each.hint += (each.hint.empty() ? "" : "; ") + told;
      each.text += fmt::format("  hint: {}\n", told);
    }
  }
  return {};
}

Result<std::vector<Cell>> check_all(const Options& options, const CheckedKernels& kernels, const Host& host) {
  std::vector<Cell> out;
  for (const std::string& script : options.names) {
    const Options with_script = TRY(options_for(options, script));
    for (size_t i = 0; i < kernels.size(); ++i)
      out.push_back({script, kernels.name(i), TRY(kernels.problems(i, with_script, host))});
    TRY_STATUS(compare(std::span(out).last(kernels.size()), kernels, with_script, host));
  }
  return out;
}

int check_scripts(const Options& options, const Host& host) {
  const std::vector<std::string>& on = static_cast<const CheckOptions&>(*options.own).kernels;
  // Without the rights to try them, the features of the kernel that runs are taken to be there.
  if (on.empty() && !run::require_privileges())
    std::fputs("espy: without root, espy cannot try the features of this kernel, and takes them to be there\n", stderr);
  CheckedKernels kernels;
  if (const Status used = kernels.use(on); !used) return complain(used.error());
  const auto cells = check_all(options, kernels, host);
  if (!cells) return complain(cells.error());
  std::string out;
  if (options.output.format == "json")
    for (const Cell& cell : *cells) out += json_of(cell) + "\n";
  else
    out = table_of(*cells, kernels.size());
  std::fputs(printable(out).c_str(), stdout);
  if (std::ranges::all_of(*cells, &Cell::runs)) return EXIT_SUCCESS;
  const auto may_run = [](const Cell& cell) { return cell.runs() || cell.is_unknown(); };
  return std::ranges::all_of(*cells, may_run) ? kExitUnknown : EXIT_FAILURE;
}

constexpr std::string_view kCheckUsage[] = {"check [--on KERNEL]... FILE... [-- ARGUMENT...]"};
constexpr std::string_view kCheckCommon[] = {"format", "I", "include", "debuginfo"};
constexpr std::string_view kCheckNotes =
    "Nothing is loaded. Exit status: 0 all run, 1 one cannot run, 2 one may not run.\n";

constexpr Example kCheckExamples[] = {
    {"espy check --on KERNEL tools/*.bt", "check all tools for the kernel of a snapshot"},
    {"espy check mine.bt -- 5 --all", "check a script, called with these arguments"}};

}  // namespace

extern const Command kCheck = {
    .word = "check",
    .summary = "check whether scripts run on a kernel, and list missing features",
    .topic = Topic::kScripts,
    .operands = Operands::kNames,
    .takes_script_arguments = true,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<CheckOptions>()); },
    .usage = kCheckUsage,
    .notes = kCheckNotes,
    .common = kCheckCommon,
    .examples = kCheckExamples,
    .run = check_scripts,
};

// ---- --fmt: prints a script in the standard layout.

namespace {

int format_script(const Options& options, const Host&) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  const auto script = run::read_script(options, sources);
  if (!script) return complain(script.error());
  const syntax::Ast ast = syntax::parse(sources, *script, diagnostics);
  // Headers are not read, so a length that they define is unknown; definitions in C are printed unchanged.
  source::Diagnostics serious;
  for (const source::Diagnostic& each : diagnostics.all())
    if (each.id != "not-a-constant") serious.add(each);
  if (report(serious, sources, options)) return EXIT_FAILURE;
  std::fputs(syntax::format(ast, sources, *script).c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kFormatUsage[] = {"format FILE", "format -e 'PROGRAM'"};
constexpr std::string_view kFormatCommon[] = {"e"};
constexpr std::string_view kFormatNotes = "FILE is `-` for the standard input. The file is not changed.\n";
constexpr Example kFormatExamples[] = {{"espy format mine.bt > new.bt", "format a script"},
                                       {"espy format -e 'begin{print(1)}'", "format a program of the command line"}};

}  // namespace

extern const Command kFormat = {
    .word = "format",
    .summary = "print a script in the standard layout",
    .topic = Topic::kScripts,
    .option = {0, "fmt", "", "the same as `espy format`"},
    .operands = Operands::kScript,
    .usage = kFormatUsage,
    .notes = kFormatNotes,
    .common = kFormatCommon,
    .examples = kFormatExamples,
    .run = format_script,
};

// ---- espy lsp: the language server, on standard input and output.

namespace {

// The kernel that scripts are checked for: this machine's, or that of a snapshot.
class Workspace {
 public:
  explicit Workspace(const Options& options) : options_(options) {}

  Status use_kernel(const std::string& snapshot) {
    snapshot_.reset();
    if (!snapshot.empty()) snapshot_.emplace(TRY(kernel::Snapshot::of(snapshot)));
    return {};
  }

  // Without privileges features cannot be tried, and are taken to be there.
  Result<std::unique_ptr<Environment>> open() const {
    if (snapshot_) return run::make_environment(options_, load::open_linux(), TRY(snapshot_->kernel()));
    if (run::require_privileges()) return run::open_environment(options_);
    return run::make_environment(options_, load::open_linux(),
                                 TRY(kernel::open_kernel("/", {[](kernel::Feature) { return true; }})));
  }

  Result<std::unique_ptr<lsp::Analysis>> analyze(const std::string& name, const std::string& text) const {
    const std::shared_ptr<Environment> e = TRY(open());
    const source::SourceId script = e->sources.add(name, text);
    check::CheckRequest request = e->check_request();
    request.binding = spec::Binding::kList;
    syntax::Ast ast = run::parse_script(script, request);
    check::Checked checked = check::check(std::move(ast), request);
    return std::make_unique<lsp::Analysis>(
        lsp::Analysis{e->registry, *e->kernel, e->types, e->sources, e->diagnostics, script, std::move(checked), e});
  }

  std::vector<std::string> list(const spec::Provider& provider, const std::vector<std::string>& parts) const {
    const auto e = open();
    if (!e) return {};
    spec::ListRequest request{parts, false, *(*e)->kernel, (*e)->types, &(*e)->symbols, (*e)->config};
    std::vector<std::string> out;
    for (spec::ListedProbe& probe : provider.list(request)) out.push_back(std::move(probe.name));
    return out;
  }

 private:
  const Options& options_;
  std::optional<kernel::Snapshot> snapshot_;
};

int serve_language(const Options& options, const Host&) {
  Workspace workspace(options);
  const spec::Registry registry = run::make_registry();
  const lsp::Services services{
      [&](const std::string& name, const std::string& text) { return workspace.analyze(name, text); },
      [&](const spec::Provider& provider, const std::vector<std::string>& parts) {
        return workspace.list(provider, parts);
      },
      [&](const std::string& snapshot) { return workspace.use_kernel(snapshot); }, registry, ESPY_VERSION};
  lsp::Connection connection(STDIN_FILENO, STDOUT_FILENO);
  const auto status = lsp::Server(services, connection).run();
  return status ? *status : complain(status.error());
}

constexpr std::string_view kLanguageServerUsage[] = {"lsp"};
constexpr std::string_view kLanguageServerNotes =
    "An editor starts it. It needs no privileges. docs/guides/editors.md has the\nsettings of editors.\n";

constexpr Example kLanguageServerExamples[] = {
    {"espy lsp", "what the settings of an editor name as the server"},
    {"sudo espy snapshot -o KERNEL", "let editors that are not root check for this kernel"}};

}  // namespace

extern const Command kLanguageServer = {
    .word = "lsp",
    .summary = "serve editors as a language server, on stdin and stdout",
    .topic = Topic::kScripts,
    .operands = Operands::kNone,
    .usage = kLanguageServerUsage,
    .notes = kLanguageServerNotes,
    .examples = kLanguageServerExamples,
    .run = serve_language,
};

}  // namespace espy::cli
