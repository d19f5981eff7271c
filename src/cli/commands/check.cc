// espy check: whether scripts run on a kernel, this one or those of snapshots. Nothing is loaded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/printable.h"
#include "base/strings.h"
#include "cli/check_script.h"
#include "cli/command.h"
#include "cli/elsewhere.h"
#include "cli/tool_options.h"
#include "output/json.h"

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
    {0, "on", "KERNEL", "check for this kernel, a file that espy snapshot has written (may be given again)",
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
    problems.push_back(fmt::format(R"({{"place": {}, "message": {}, "hint": {}}})", output::quoted(each.place),
                                   output::quoted(each.message), output::quoted(each.hint)));
  const std::string_view runs = cell.runs() ? "true" : cell.is_unknown() ? "null" : "false";
  return fmt::format(R"({{"type": "check", "data": {{"script": {}, "kernel": {}, "runs": {}, "problems": [{}]}}}})",
                     output::quoted(cell.script), output::quoted(cell.kernel), runs, fmt::join(problems, ", "));
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
  // The features of the kernel that runs are found by trying.
  if (const Status may_try = on.empty() ? require_privileges() : Status(); !may_try) return complain(may_try.error());
  CheckedKernels kernels;
  if (const Status used = kernels.use(on); !used) return complain(used.error());
  const auto cells = check_all(options, kernels, host);
  if (!cells) return complain(cells.error());
  std::string out;
  if (options.format == "json")
    for (const Cell& cell : *cells) out += json_of(cell) + "\n";
  else
    out = table_of(*cells, kernels.size());
  std::fputs(printable(out).c_str(), stdout);
  if (std::ranges::all_of(*cells, &Cell::runs)) return EXIT_SUCCESS;
  const auto may_run = [](const Cell& cell) { return cell.runs() || cell.is_unknown(); };
  return std::ranges::all_of(*cells, may_run) ? kExitUnknown : EXIT_FAILURE;
}

constexpr std::string_view kUsage[] = {"check [--on KERNEL]... FILE... [-- ARGUMENTS]"};
constexpr Example kExamples[] = {
    {"espy check --on KERNEL tools/*.bt", "which scripts run on the kernel of a snapshot, and what the others lack"}};

}  // namespace

extern const Command kCheck = {
    .word = "check",
    .operands = Operands::kNames,
    .takes_script_arguments = true,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<CheckOptions>()); },
    .usage = kUsage,
    .examples = kExamples,
    .run = check_scripts,
};

}  // namespace espy::cli
