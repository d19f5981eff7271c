#include "cli/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/strings.h"
#include "check/check.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "cli/tool_options.h"
#include "kernel/features.h"

namespace espy::cli {

namespace {

constexpr std::string_view kSignatures =
    R"(A signature shows the result, the name and the parameters. `int` stands for any integer, bool or enum, `any` for any
value, `string` for strings of every capacity. `literal` wants a constant. The value after `=` is the default. You may
write a builtin without parameters with or without `()`. The result `any` depends on the arguments or on the probe.

)";

const kernel::FeatureRow& row_of(kernel::Feature feature) {
  return *std::ranges::find(kernel::feature_rows(), feature, &kernel::FeatureRow::feature);
}

// The first lines of a page, with links to its sections as scripts/check-docs wants them.
std::string head(std::string_view title, std::string_view text, std::span<const std::string> sections = {}) {
  std::string out = fmt::format("# {}\n\n{}\n\n", title, trim(text));
  for (const std::string& section : sections) {
    std::string anchor = to_lower(section);
    std::erase_if(anchor, [](char c) { return c == ','; });
    std::ranges::replace(anchor, ' ', '-');
    out += fmt::format("{}[{}](#{})", &section == sections.data() ? "On this page: " : ", ", section, anchor);
  }
  return sections.empty() ? out : out + ".\n\n";
}

std::string code_block(std::string_view text) { return fmt::format("```\n{}\n```\n\n", text); }

// The form of a probe type, "software:EVENT or software:EVENT:COUNT", with its attach points as code.
std::string with_code(const spec::Provider& provider) {
  std::string out;
  for (std::string_view word : split(provider.form, ' ')) {
    const std::string_view comma = word.ends_with(',') ? "," : "";
    word.remove_suffix(comma.size());
    const std::string_view mark = word.starts_with(provider.name) ? "`" : "";
    out += fmt::format("{}{}{}{}{}", out.empty() ? "" : " ", mark, word, mark, comma);
  }
  return out;
}

std::string probe_section(const spec::Provider& provider) {
  std::string out = fmt::format("## {}\n\n{}\n\nForm: {}.", provider.name, provider.doc, with_code(provider));
  if (!provider.aliases.empty()) out += fmt::format(" Short: `{}`.", fmt::join(provider.aliases, "`, `"));
  return out + "\n\n" + code_block(provider.example);
}

std::string builtin_section(const spec::Builtin& builtin) {
  std::string out = fmt::format("### {}\n\n`{}`\n\n{}", spec::name_of(builtin), builtin.sig, builtin.doc);
  if (!builtin.providers.empty()) out += fmt::format(" Only in `{}` probes.", builtin.providers);
  if (builtin.needs) {
    const kernel::FeatureRow& row = row_of(*builtin.needs);
    out += fmt::format(" Needs the kernel feature `{}` (Linux {}).", row.name, row.since);
  }
  if (builtin.is_unsafe && builtin.doc.find("--unsafe") == builtin.doc.npos) out += " Needs `--unsafe`.";
  out += "\n\n";
  return builtin.example.empty() ? out : out + code_block(builtin.example);
}

std::string probe_types_page(const spec::Registry& registry) {
  std::vector<std::string> names;
  for (const spec::Provider* provider : registry.providers()) names.emplace_back(provider->name);
  std::string out =
      head("Probe types",
           "Made from espy's own table by `make docs`. [Probes](probes.md) describes them. Names and short "
           "names are the same\nin capitals.",
           names);
  for (const spec::Provider* provider : registry.providers()) out += probe_section(*provider);
  return out;
}

std::string builtins_page(const spec::Registry& registry) {
  std::vector<std::string> titles;
  for (const spec::BuiltinFamily& family : registry.families()) titles.emplace_back(family.title);
  std::string out = head("Builtins", kSignatures, titles);
  for (const spec::BuiltinFamily& family : registry.families()) {
    out += fmt::format("## {}\n\n", family.title);
    if (!family.note.empty()) out += fmt::format("{}\n\n", family.note);
    for (const spec::Builtin& builtin : family) out += builtin_section(builtin);
  }
  return out;
}

std::string option_table(std::span<const OptionRow> rows) {
  std::string out = "| option | |\n|---|---|\n";
  for (const OptionRow& row : rows) out += fmt::format("| `{}` | {} |\n", option_names(row), option_doc(row));
  return out + "\n";
}

std::string commands_table() {
  std::string out = "## Commands\n\n| command | |\n|---|---|\n";
  for (const Command* command : commands())
    if (!command->summary.empty()) out += fmt::format("| `espy {}` | {} |\n", command->word, command->summary);
  return out + "\n";
}

std::string options_page(const spec::Registry&) {
  std::vector<std::string> titles = {"Commands"};
  std::string out = commands_table();
  const auto add = [&](std::string title, std::span<const OptionRow> rows) {
    out += fmt::format("## {}\n\n{}", title, option_table(rows));
    titles.push_back(std::move(title));
  };
  for (const OptionGroup& group : option_groups()) add(std::string(group.title), group.rows);
  add("Older spellings of commands", old_spellings());
  for (const Command* command : commands())
    if (!command->options.empty()) add(fmt::format("espy {}", command->word), command->options);
  return head("Commands and options", "Made from espy's own tables by `make docs`. `espy help` prints the same texts.",
              titles) +
         out;
}

std::string config_variables_page(const spec::Registry&) {
  std::string out = head("Config variables",
                         "Made from espy's own table by `make docs`. Set them in the script, `config = { max_strlen = "
                         "64 }`, or in the\n"
                         "environment, `BPFTRACE_MAX_STRLEN=64`. The environment overrides the script.") +
                    "| variable | default | |\n|---|---|---|\n";
  std::string without_effect;
  for (const check::ConfigRow& row : check::config_rows()) {
    if (row.doc.empty()) {
      without_effect += fmt::format("{}`{}`", without_effect.empty() ? "" : ", ", row.name);
      continue;
    }
    out += fmt::format("| `{}` | `{}` | {}", row.name, row.initial, row.doc);
    if (!row.old_name.empty()) out += fmt::format(" Old name: `{}`.", row.old_name);
    out += " |\n";
  }
  return out + fmt::format("\nAccepted and without effect: {}.\n", without_effect);
}

std::string kernel_features_page(const spec::Registry&) {
  std::string out = head("Kernel features",
                         "Made from espy's own table by `make docs`. espy finds by trying what the kernel has; `espy "
                         "features` shows it, and\n`--no-feature NAME` does without a feature. No script can run "
                         "without `ringbuf`. The others are for some scripts only.") +
                    "| feature | since Linux | tried by | |\n|---|---|---|---|\n";
  for (const kernel::FeatureRow& row : kernel::feature_rows())
    out += fmt::format("| `{}` | {} | {} | {} |\n", row.name, row.since, row.how, row.meaning);
  return out;
}

// The options of single commands are the last. A name that several of them have is there once.
std::vector<OptionRow> all_option_rows() {
  std::vector<OptionRow> rows(option_rows().begin(), option_rows().end());
  for (const OptionRow& row : old_spellings()) rows.push_back(row);
  const auto is_known = [&](const OptionRow& row) {
    return !row.long_name.empty() && std::ranges::find(rows, row.long_name, &OptionRow::long_name) != rows.end();
  };
  for (const Command* command : commands())
    for (const OptionRow& row : command->options)
      if (!is_known(row)) rows.push_back(row);
  return rows;
}

// "line full none", or "PID".
bool takes_next_word(const OptionRow& row) { return !row.argument.empty() && !row.is_argument_optional; }

std::string argument_of(const OptionRow& row) {
  if (row.choices == nullptr) return std::string(row.argument);
  return fmt::format("{}", fmt::join(row.choices(), " "));
}

// mdoc(7) takes a dash for a minus and a leading point for a macro.
std::string escape_mdoc(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-' || c == '\\') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

constexpr ReferencePart kPages[] = {{"probe-types", probe_types_page},
                                    {"builtins", builtins_page},
                                    {"options", options_page},
                                    {"config-variables", config_variables_page},
                                    {"kernel-features", kernel_features_page}};

}  // namespace

std::span<const ReferencePart> reference_pages() { return kPages; }

namespace {

std::string mdoc_list(std::span<const OptionRow> rows) {
  std::string out = ".Bl -tag -width Ds\n";
  for (const OptionRow& row : rows) {
    out += ".It";
    if (row.short_name != 0) out += fmt::format(" Fl {}", row.short_name);
    if (row.short_name != 0 && !row.long_name.empty()) out += " ,";
    if (!row.long_name.empty()) out += fmt::format(" Fl \\-{}", escape_mdoc(row.long_name));
    if (!row.argument.empty())
      out += fmt::format(" {} {}", row.is_argument_optional ? "Ns Op = Ns Ar" : "Ar", row.argument);
    out += fmt::format("\n{}\n", escape_mdoc(option_doc(row)));
  }
  return out + ".El\n";
}

}  // namespace

std::string options_mdoc() {
  std::string out = ".Sh COMMANDS\n.Bl -tag -width snapshot\n";
  for (const Command* command : commands())
    if (!command->summary.empty()) out += fmt::format(".It Cm {}\n{}\n", command->word, escape_mdoc(command->summary));
  out += ".El\n.Sh OPTIONS\n";
  for (const OptionGroup& group : option_groups()) out += fmt::format(".Ss {}\n{}", group.title, mdoc_list(group.rows));
  out += fmt::format(".Ss Older spellings of commands\n{}", mdoc_list(old_spellings()));
  for (const Command* command : commands())
    if (!command->options.empty()) out += fmt::format(".Ss espy {}\n{}", command->word, mdoc_list(command->options));
  return out;
}

namespace {

std::vector<std::string> spellings(const OptionRow& row) {
  std::vector<std::string> out;
  if (row.short_name != 0) out.push_back(fmt::format("-{}", row.short_name));
  if (!row.long_name.empty()) out.push_back(fmt::format("--{}", row.long_name));
  return out;
}

std::string command_words() {
  std::string out;
  for (const Command* command : commands())
    if (!command->word.empty()) out += fmt::format("{}{}", out.empty() ? "" : " ", command->word);
  return out;
}

std::string probe_words(const spec::Registry& registry) {
  std::string out;
  for (const spec::Provider* provider : registry.providers())
    out += fmt::format("{}{}:", out.empty() ? "" : " ", provider->name);
  return out;
}

std::string tool_words() {
  std::string out;
  for (const BundledTool& tool : bundled_tools()) out += fmt::format("{}{}", out.empty() ? "" : " ", tool.name);
  return out;
}

std::string words_of(std::span<const OptionRow> rows) {
  std::string out;
  for (const OptionRow& row : rows) out += fmt::format("{}{}", out.empty() ? "" : " ", fmt::join(spellings(row), " "));
  return out;
}

// The options of a command: its own, and the general ones that its page shows.
std::string words_of(const Command& command) {
  std::vector<OptionRow> rows(command.options.begin(), command.options.end());
  for (const OptionRow& row : option_rows())
    if (is_common(command, row)) rows.push_back(row);
  return words_of(rows);
}

std::string bash_words(const spec::Registry& registry) {
  std::string of_commands, arguments;
  for (const Command* command : commands())
    if (!command->summary.empty())
      of_commands += fmt::format("    {}) echo '{} --help' ;;\n", command->word, words_of(*command));
  for (const OptionRow& row : all_option_rows())
    if (takes_next_word(row))
      arguments += fmt::format("    {}) echo '{}' ;;\n", fmt::join(spellings(row), " | "), argument_of(row));
  std::vector<OptionRow> general(option_rows().begin(), option_rows().end());
  for (const OptionRow& row : old_spellings()) general.push_back(row);
  return fmt::format(
      "_espy_commands='{}'\n_espy_tools='{}'\n_espy_options='{}'\n_espy_tool_options='{} --help'\n_espy_probes='{}'\n"
      "# The options of a command.\n"
      "_espy_options_of() {{\n  case $1 in\n{}  esac\n}}\n"
      "# The choices of an option's argument, or what it is, in capitals; nothing if the option takes none.\n"
      "_espy_argument() {{\n  case $1 in\n{}  esac\n}}\n",
      command_words(), tool_words(), words_of(general), words_of(tool_option_rows()), probe_words(registry),
      of_commands, arguments);
}

// How a shell completes the argument of an option, by the name that the argument has in lists of options.
struct ArgumentRow {
  std::string_view argument, zsh, fish;
};

constexpr ArgumentRow kArguments[] = {
    {"PID", "_pids", "-x -a '(__fish_complete_pids)'"},
    {"COMMAND", "_cmdstring", "-x -a '(__fish_complete_command)'"},
    {"FILE", "_files", "-r -F"},
    {"DIRECTORY", "_files -/", "-x -a '(__fish_complete_directories)'"},
    {"DIRECTORIES", "_files -/", "-x -a '(__fish_complete_directories)'"},
};

const ArgumentRow* find_argument(const OptionRow& row) {
  const auto* found = std::ranges::find(kArguments, row.argument, &ArgumentRow::argument);
  return found != std::end(kArguments) ? found : nullptr;
}

// Specifications for _arguments, see zshcompsys(1).
std::string zsh_option(const OptionRow& row) {
  const std::string doc = escape_characters(escape_characters(option_doc(row), "[]:\\"), "'", "'\\'");
  std::string argument;
  if (takes_next_word(row)) {
    const ArgumentRow* known = find_argument(row);
    argument = row.choices != nullptr ? fmt::format("({})", argument_of(row)) : std::string(known ? known->zsh : " ");
    argument = fmt::format(":{}:{}", row.argument, argument);
  }
  std::string out;
  for (const std::string& name : spellings(row)) out += fmt::format("  '*{}[{}]{}'\n", name, doc, argument);
  return out;
}

std::string zsh_words(const spec::Registry& registry) {
  std::string options;
  for (const OptionRow& row : all_option_rows()) options += zsh_option(row);
  return fmt::format(
      "local -a espy_commands=({})\nlocal -a espy_tools=({})\nlocal -a espy_probes=({})\nlocal -a "
      "espy_options=(\n{})\n",
      command_words(), tool_words(), probe_words(registry), options);
}

std::string fish_option(const OptionRow& row) {
  std::string out = "complete -c espy";
  if (row.short_name != 0) out += fmt::format(" -s {}", row.short_name);
  if (!row.long_name.empty()) out += fmt::format(" -l {}", row.long_name);
  if (row.choices != nullptr)
    out += fmt::format(" -x -a '{}'", argument_of(row));
  else if (takes_next_word(row))
    out += fmt::format(" {}", find_argument(row) ? find_argument(row)->fish : "-x");
  return out + fmt::format(" -d '{}'\n", escape_characters(option_doc(row), "'\\"));
}

std::string fish_words(const spec::Registry& registry) {
  std::string out = fmt::format("set -g __espy_commands {}\nset -g __espy_tools {}\nset -g __espy_probes {}\n",
                                command_words(), tool_words(), probe_words(registry));
  for (const OptionRow& row : all_option_rows()) out += fish_option(row);
  return out;
}

constexpr ReferencePart kShells[] = {{"bash", bash_words}, {"zsh", zsh_words}, {"fish", fish_words}};

}  // namespace

std::span<const ReferencePart> shells() { return kShells; }

}  // namespace espy::cli
