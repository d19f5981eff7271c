// espy tools: the scripts that are part of espy. And what every tool has, one of these or one that espy has built:
// --help and --version, which need neither privileges nor a kernel.
#include <errno.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "cli/tool_options.h"
#include "run/run_script.h"
#include "tool/tool.h"

namespace espy::cli {

namespace {

struct ToolsOptions : CommandOptions {
  std::string shown;  // --show
};

Status set_show(Options& options, std::string_view name) {
  static_cast<ToolsOptions&>(*options.own).shown = name;
  return {};
}

constexpr OptionRow kRows[] = {{0, "show", "NAME", "print the script of this tool", set_show}};

bool has(std::string_view text, std::string_view lower_word) {
  return to_lower(text).find(lower_word) != std::string::npos;
}

// Tools under the titles of their topics.
std::string by_topic(const std::vector<BundledTool>& tools) {
  constexpr size_t kNameColumn = 19;
  std::set<std::string_view> topics;
  for (const BundledTool& tool : tools) topics.insert(tool.topic);
  std::string out;
  for (const std::string_view topic : topics) {
    out += fmt::format("{}{}:\n", out.empty() ? "" : "\n", topic);
    for (const BundledTool& tool : tools)
      if (tool.topic == topic) out += run::help_row(tool.name, tool.summary, kNameColumn);
  }
  return out;
}

std::string unknown_hint(std::string_view word) {
  std::vector<std::string_view> names;
  for (const BundledTool& tool : bundled_tools()) names.push_back(tool.name);
  const std::string near = nearest(word, names);
  return near.empty() ? "espy tools lists all" : fmt::format("did you mean `{}`?", near);
}

Result<std::string> search(std::string_view word) {
  const std::string lower = to_lower(word);
  std::vector<BundledTool> found, mentioning;
  for (const BundledTool& tool : bundled_tools()) {
    if (has(tool.name, lower) || has(tool.topic, lower) || has(tool.summary, lower))
      found.push_back(tool);
    else if (has(bundled_script(tool.name), lower))
      mentioning.push_back(tool);
  }
  if (found.empty() && mentioning.empty()) return fail(fmt::format("no tool has `{}`", word), 0, unknown_hint(word));
  std::string out = by_topic(found);
  if (!mentioning.empty())
    out += fmt::format("{}`{}` is in the text of:\n\n{}", out.empty() ? "" : "\n", word, by_topic(mentioning));
  return out;
}

Result<std::string> answer(const Options& options) {
  const std::string& shown = static_cast<const ToolsOptions&>(*options.own).shown;
  if (!shown.empty()) {
    const std::string_view script = bundled_script(shown);
    if (script.empty()) return fail(fmt::format("there is no tool `{}`", shown), ENOENT, unknown_hint(shown));
    return std::string(script);
  }
  if (options.names.empty())
    return by_topic({bundled_tools().begin(), bundled_tools().end()}) +
           "\n`sudo espy NAME` runs a tool, `espy NAME --help` explains it.\n";
  std::string word;
  for (const std::string& each : options.names) word += (word.empty() ? "" : " ") + each;
  return search(word);
}

int show_tools(const Options& options, const Host&) {
  const auto text = answer(options);
  if (!text) return complain(text.error());
  std::fputs(text->c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kUsage[] = {"tools [WORD]", "tools --show NAME", "NAME [OPTION...] [ARGUMENT...]"};
constexpr std::string_view kNotes =
    "A tool is a script that is part of espy. WORD is searched in names, topics,\n"
    "summaries and texts. `espy NAME --help` explains a tool.\n";
constexpr Example kExamples[] = {{"espy tools tcp", "list the tools about TCP"},
                                 {"sudo espy opensnoop -p 4711 -d 10", "run a tool for one process and ten seconds"}};

}  // namespace

extern const Command kTools = {
    .word = "tools",
    .summary = "list the tools, which are scripts inside espy",
    .topic = Topic::kLookUp,
    .operands = Operands::kOptionalNames,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<ToolsOptions>()); },
    .usage = kUsage,
    .notes = kNotes,
    .examples = kExamples,
    .run = show_tools,
};

// ---- --help and --version of a tool

namespace {

// The first paragraph of the comment that the script begins with, behind a line for the shell.
std::string summary(std::string_view script) {
  std::string out;
  if (script.starts_with("#!")) script.remove_prefix(std::min(script.find('\n'), script.size() - 1) + 1);
  while (script.starts_with("//")) {
    const std::string_view line = trim(script.substr(2, script.find('\n') - 2));
    if (line.empty()) break;
    out += fmt::format("{}\n", line);
    script.remove_prefix(std::min(script.find('\n'), script.size() - 1) + 1);
  }
  return out.empty() ? out : "\n" + out;
}

// Of a tool that espy has built; its script has not the head of a tool.
std::string page_without_head(const tool::Tool& tool) {
  std::string out =
      fmt::format("usage: {} [options] [arguments]\n{}", program_invocation_short_name, summary(tool.script));
  if (!tool.options.empty())
    out += fmt::format("\noptions of {}:\n{}", tool.name, run::script_option_lines(tool.options));
  if (!tool.knows_all_options)
    out += "\nThere may be more: the script was not checked for this kernel when the tool was built.\n";
  return out;
}

constexpr size_t kColumns = 80;

// A line of a head that is not prose. A row of an example stays as it is, and a description is wrapped in its column.
std::string fitted_line(std::string_view line) {
  const size_t gap = line.rfind("  ");
  const bool is_description = gap == line.npos || line.starts_with("  ");
  const size_t column = gap == line.npos ? 0 : gap + 2;
  if (line.size() <= kColumns || !is_description) return fmt::format("{}\n", line);
  return fmt::format("{}{}\n", line.substr(0, column), run::wrapped(line.substr(column), column));
}

// The lines of a head, in lines of 80 columns. Prose is a paragraph that has a longer line, and no columns.
std::string fitted(std::string_view text) {
  std::string out;
  std::vector<std::string_view> paragraph;
  const auto end_paragraph = [&] {
    const bool is_prose =
        std::ranges::any_of(paragraph, [](std::string_view line) { return line.size() > kColumns; }) &&
        std::ranges::none_of(
            paragraph, [](std::string_view line) { return line.find("  ") != line.npos || line.starts_with(' '); });
    if (is_prose)
      out += run::wrapped(fmt::format("{}", fmt::join(paragraph, " ")), 0) + "\n";
    else
      for (const std::string_view line : paragraph) out += fitted_line(line);
    paragraph.clear();
  };
  for (const std::string_view line : split(text.substr(0, text.size() - (text.ends_with('\n') ? 1 : 0)), '\n')) {
    if (!line.empty()) {
      paragraph.push_back(line);
      continue;
    }
    end_paragraph();
    out += "\n";
  }
  end_paragraph();
  return out;
}

std::string page_of_head(const tool::Tool& tool, const tool::ToolHead& head) {
  const std::string call = tool.is_bundled ? "espy " + tool.name : std::string(program_invocation_short_name);
  const std::string title = run::wrapped(fmt::format("{}: {}", tool.name, head.sentence), 0);
  const std::string arguments = head.arguments + (head.arguments.empty() ? "" : " ") + "[OPTION...]";
  const size_t column = std::string_view("usage:  ").size() + call.size();
  std::string out =
      fmt::format("{}\n\nusage: {} {}\n{}", title, call, run::wrapped(arguments, column), fitted(head.rest));
  std::vector<check::ScriptOption> others;
  for (const check::ScriptOption& option : tool.options)
    if (head.rest.find("--" + option.name) == head.rest.npos) others.push_back(option);
  if (!others.empty()) out += "\n" + run::script_option_lines(others);
  return out;
}

constexpr std::string_view kShownForTools[] = {"pid",    "cmd",       "duration", "follow", "comm",
                                               "cgroup", "container", "output",   "format", "watch",
                                               "strict", "verbose",   "budget"};

}  // namespace

std::string tool_page(const tool::Tool& tool) {
  const auto head = tool::tool_head(tool.script);
  std::string out = head ? page_of_head(tool, *head) : page_without_head(tool);
  out += tool.is_bundled ? "\nOptions of every tool:\n" : "\noptions of all tools that espy has built:\n";
  if (!tool.is_bundled)
    for (const Command* command : tool_commands()) out += option_line(command->option);
  for (const OptionRow& row : tool_option_rows()) {
    const bool is_shown = std::ranges::find(kShownForTools, row.long_name) != std::end(kShownForTools);
    if (!tool.is_bundled)
      out += option_line(row);
    else if (is_shown)
      out += short_option_line(row);
  }
  if (tool.is_bundled)
    out += fmt::format("`espy help options` has more. `espy tools --show {}` prints the script.\n", tool.name);
  return printable(out);
}

namespace {

int show_tool_help(const Options& options, const Host&) {
  std::fputs(tool_page(*options.script.tool).c_str(), stdout);
  return EXIT_SUCCESS;
}

int show_tool_version(const Options& options, const Host&) {
  const tool::Tool& tool = *options.script.tool;
  const std::string out = fmt::format("{}, built with espy {}; script {}, checksum {:08x}\n", tool.name, ESPY_VERSION,
                                      tool.script_name, tool.checksum);
  std::fputs(printable(out).c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr Command kToolHelp = {.option = {'h', "help", "", "show this page"}, .run = show_tool_help};
constexpr Command kToolVersion = {.option = {'V', "version", "", "show the versions of espy and of the script"},
                                  .run = show_tool_version};

}  // namespace

std::span<const Command* const> tool_commands() {
  static constexpr const Command* kAll[] = {&kToolHelp, &kToolVersion};
  return kAll;
}

}  // namespace espy::cli
