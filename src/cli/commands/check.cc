// espy check: whether scripts run on a kernel, this one or those of snapshots. Nothing is loaded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/printable.h"
#include "base/strings.h"
#include "cli/check_script.h"
#include "cli/command.h"
#include "cli/tool_options.h"
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

struct Cell {
  std::string script, kernel;
  std::vector<ScriptProblem> problems;
};

std::string json_of(const Cell& cell) {
  std::vector<std::string> problems;
  for (const ScriptProblem& each : cell.problems)
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
    for (const ScriptProblem& each : cell.problems)
      reasons += each.text.empty() ? fmt::format("{}\n", each.message) : each.text;
  }
  return out + "\n" + reasons;
}

Result<std::vector<Cell>> check_all(const Options& options, const CheckedKernels& kernels, const Host& host) {
  std::vector<Cell> out;
  for (const std::string& script : options.names) {
    const Options with_script = TRY(options_for(options, script));
    for (size_t i = 0; i < kernels.size(); ++i) {
      const auto environment = TRY(kernels.environment(i, with_script, host));
      out.push_back({script, kernels.name(i), TRY(check_script(with_script, *environment)).problems});
    }
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
