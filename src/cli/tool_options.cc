#include "cli/tool_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/untrusted_file.h"
#include "tool/tool.h"

namespace espy::cli {

namespace {

struct ToolOption {
  std::string_view name;
  bool is_built_in = true;  // may be given when the tool is built
};

// By their long names.
constexpr ToolOption kToolOptions[] = {
    {"pid", false},
    {"cmd", false},
    {"follow", false},
    {"follow-new", false},
    {"comm"},
    {"cgroup"},
    {"container", false},
    {"duration"},
    {"user"},
    {"output", false},
    {"append"},
    {"reopen"},
    {"format"},
    {"buffer"},
    {"verbose"},
    {"strict"},
    {"quiet"},
    {"warnings"},
    {"no-warnings"},
    {"unsafe"},
    {"budget"},
    {"cost", false},
    {"check-cost", false},
    {"yes"},
    {"listen", false},
    {"watch", false},
    {"debuginfo"},
    {"probe-filter"},
    {"no-feature"},
    {"dry-run", false},
    {"dump", false},

};

// What only the building of a tool uses.
constexpr std::string_view kBuildOptions[] = {"output", "include"};

const ToolOption* find_tool_option(const OptionRow& row) {
  const auto* found = std::ranges::find(kToolOptions, row.long_name, &ToolOption::name);
  return row.long_name.empty() || found == std::end(kToolOptions) ? nullptr : found;
}

bool is_of_build(const OptionRow& row, std::span<const OptionRow> own) {
  if (row.short_name == 'I' || row.short_name == 'e') return true;
  if (std::ranges::find(kBuildOptions, row.long_name) != std::end(kBuildOptions)) return true;
  return std::ranges::any_of(own, [&](const OptionRow& each) { return &each == &row; });
}

std::string display_name(const OptionRow& row) {
  return row.long_name.empty() ? fmt::format("-{}", row.short_name) : fmt::format("--{}", row.long_name);
}

}  // namespace

std::vector<OptionRow> const& tool_option_rows() {
  static const std::vector<OptionRow> kRows = [] {
    std::vector<OptionRow> out;
    for (const OptionRow& row : option_rows())
      if (find_tool_option(row) != nullptr) out.push_back(row);
    // Scripts have another -d, of bpftrace.
    std::ranges::find(out, "duration", &OptionRow::long_name)->short_name = 'd';
    return out;
  }();
  return kRows;
}

Result<std::vector<std::string>> built_in_arguments(const Options& options, std::span<const OptionRow> own) {
  std::vector<std::string> out;
  for (const auto& [row, argument] : options.typed) {
    if (is_of_build(*row, own)) continue;
    const ToolOption* option = find_tool_option(*row);
    if (option == nullptr) return fail(fmt::format("{} has no meaning for a tool", display_name(*row)));
    if (!option->is_built_in)
      return fail(fmt::format("{} is not a part of a tool: give it to the tool when you start it", display_name(*row)));
    out.push_back(display_name(*row) + (row->argument.empty() ? "" : "=" + argument));
  }
  return out;
}

Result<std::shared_ptr<const tool::Tool>> own_tool() {
  const auto script = TRY(tool::own_script());
  return std::make_shared<const tool::Tool>(TRY(tool::decode(script)));
}

Result<Options> options_for(const Options& options, const std::string& file) {
  constexpr std::string_view kElf =
      "\x7f"
      "ELF";
  Options out = options;
  out.script.text.reset();
  out.script.file = file;
  const auto start = read_start_of_file(file, kElf.size());
  if (!start || *start != kElf) return out;
  const std::string elf = TRY(read_untrusted(file, max_binary_bytes()));
  const auto executable = tool::describe(elf);
  if (!executable) return fail(fmt::format("{} {}", file, executable.error().message), kRefusedFile);
  if (!executable->script) return fail(fmt::format("{} is espy, without a script", file), kRefusedFile);
  out.script.tool = std::make_shared<const tool::Tool>(TRY(tool::decode(*executable->script)));
  out.config = TRY(parse_tool_options(out.script.tool, {})).config;
  return out;
}

}  // namespace espy::cli
