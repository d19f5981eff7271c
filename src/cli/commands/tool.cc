// --help and --version of a tool. They need neither privileges nor a kernel.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/printable.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/tool_options.h"

namespace espy::cli {

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

int show_tool_help(const Options& options, const Host&) {
  const tool::Tool& tool = *options.tool;
  std::string out =
      fmt::format("usage: {} [options] [arguments]\n{}", program_invocation_short_name, summary(tool.script));
  if (!tool.options.empty()) out += fmt::format("\noptions of {}:\n{}", tool.name, script_option_lines(tool.options));
  if (!tool.knows_all_options)
    out += "\nThere may be more: the script was not checked for this kernel when the tool was built.\n";
  out += "\noptions of all tools that espy has built:\n";
  for (const Command* command : tool_commands()) out += option_line(command->option);
  for (const OptionRow& row : tool_option_rows()) out += option_line(row);
  std::fputs(printable(out).c_str(), stdout);
  return EXIT_SUCCESS;
}

int show_tool_version(const Options& options, const Host&) {
  const tool::Tool& tool = *options.tool;
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
