#include "cli/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/strings.h"
#include "check/check.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "kernel/features.h"
#include "run/run_script.h"

namespace espy::cli {

namespace {

constexpr size_t kIndent = 4;
constexpr std::string_view kAllConfig = "config";  // the block of a script that sets config variables

std::string paragraph(std::string_view text) {
  return text.empty() ? "" : fmt::format("{:{}}{}\n", "", kIndent, run::wrapped(text, kIndent));
}

std::string lines_of(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) out += fmt::format("{:{}}{}\n", "", kIndent, line);
  return out;
}

std::string example(std::string_view text) { return text.empty() ? "" : "\n" + lines_of(text); }

std::string describe(const spec::Builtin& builtin) {
  std::string out = fmt::format("{} (builtin)\n{}", spec::name_of(builtin), lines_of(builtin.sig));
  out += paragraph(builtin.doc);
  if (!builtin.providers.empty()) out += paragraph(fmt::format("Only in `{}` probes.", builtin.providers));
  if (builtin.needs) {
    const auto row = std::ranges::find(kernel::feature_rows(), *builtin.needs, &kernel::FeatureRow::feature);
    out += paragraph(fmt::format("Needs the kernel feature `{}` (Linux {}).", row->name, row->since));
  }
  if (builtin.is_unsafe) out += paragraph("Needs `--unsafe`.");
  return out + example(builtin.example);
}

std::string describe(const spec::Provider& provider) {
  std::string out = fmt::format("{} (probe type)\n{}{}", provider.name, paragraph(provider.doc),
                                paragraph(fmt::format("Syntax: {}", provider.form)));
  if (!provider.aliases.empty()) out += paragraph(fmt::format("Short names: {}.", fmt::join(provider.aliases, ", ")));
  return out + example(provider.example);
}

std::string environment_name(std::string_view variable) {
  std::string out(variable);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string describe(const check::ConfigRow& row) {
  if (row.doc.empty()) return fmt::format("{} (config variable)\n    Accepted and without effect.\n", row.name);
  return fmt::format(
      "{} (config variable)\n{}{}", row.name, paragraph(fmt::format("{} Default: {}.", row.doc, row.initial)),
      paragraph(fmt::format("In a script: `config = {{ {} = VALUE }}`. In the environment: `BPFTRACE_{}=VALUE`.",
                            row.name, environment_name(row.name))));
}

bool is_named(const OptionRow& row, std::string_view word) {
  if (word.starts_with("--"))
    word.remove_prefix(2);
  else if (word.starts_with('-') && word.size() == 2)
    return row.short_name == word[1];
  return !row.long_name.empty() && row.long_name == word;
}

std::string options(std::string_view word) {
  std::string out;
  for (const OptionRow& row : option_rows())
    if (is_named(row, word)) out += fmt::format("{} (option)\n{}", option_names(row), paragraph(option_doc(row)));
  for (const Command* command : commands())
    for (const OptionRow& row : command->options)
      if (is_named(row, word))
        out += fmt::format("{} (option of espy {})\n{}", option_names(row), command->word, paragraph(option_doc(row)));
  return out;
}

std::string all_config() {
  std::string out = "config variables\n";
  for (const check::ConfigRow& row : check::config_rows())
    if (!row.doc.empty()) out += run::help_row(row.name, row.doc);
  return out;
}

}  // namespace

std::string describe_word(std::string_view word, const spec::Registry& registry) {
  std::vector<std::string> parts;
  for (const spec::BuiltinFamily& family : registry.families())
    for (const spec::Builtin& builtin : family)
      if (spec::name_of(builtin) == word) parts.push_back(describe(builtin));
  if (const spec::Provider* provider = registry.find_provider(word)) parts.push_back(describe(*provider));
  if (word == kAllConfig) parts.push_back(all_config());
  for (const check::ConfigRow& row : check::config_rows())
    if (row.name == word || (!row.old_name.empty() && row.old_name == word)) parts.push_back(describe(row));
  for (const kernel::FeatureRow& row : kernel::feature_rows())
    if (row.name == word)
      parts.push_back(fmt::format("{} (kernel feature, Linux {})\n{}", row.name, row.since, paragraph(row.meaning)));
  parts.push_back(options(word));
  if (const Command* command = find_command(word))
    parts.push_back(fmt::format("{} (command)\n{}", word,
                                paragraph(fmt::format("{}: espy help {}", command->summary, command->word))));
  for (const BundledTool& tool : bundled_tools())
    if (tool.name == word)
      parts.push_back(
          fmt::format("{} (tool)\n{}", word, paragraph(fmt::format("{}: espy {} --help", tool.summary, tool.name))));
  parts.push_back(explain_diagnostic(word));
  std::string out;
  for (const std::string& part : parts) out += (out.empty() || part.empty() ? "" : "\n") + part;
  return out;
}

std::vector<std::string> known_words(const spec::Registry& registry) {
  std::vector<std::string> out;
  for (const spec::BuiltinFamily& family : registry.families())
    for (const spec::Builtin& builtin : family) out.emplace_back(spec::name_of(builtin));
  for (const spec::Provider* provider : registry.providers()) out.emplace_back(provider->name);
  for (const check::ConfigRow& row : check::config_rows()) out.emplace_back(row.name);
  for (const kernel::FeatureRow& row : kernel::feature_rows()) out.emplace_back(row.name);
  for (const OptionRow& row : option_rows()) out.emplace_back(row.long_name);
  for (const Command* command : commands()) out.emplace_back(command->word);
  for (const BundledTool& tool : bundled_tools()) out.emplace_back(tool.name);
  for (const std::string_view id : diagnostic_ids()) out.emplace_back(id);
  std::erase(out, "");
  return out;
}

}  // namespace espy::cli
