// --help, from the rows of commands and options.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"

namespace espy::cli {

std::string option_line(const OptionRow& row) {
  return help_row((row.short_name != 0 ? "" : "    ") + option_names(row), option_doc(row));
}

namespace {

std::string option_lines(std::span<const OptionRow> rows) {
  std::string out;
  for (const OptionRow& row : rows) out += option_line(row);
  return out;
}

}  // namespace

std::string help_text() {
  std::string usage, own_options, examples;
  for (const Command* command : commands()) {
    for (const std::string_view line : command->usage)
      usage += fmt::format("{} espy {}\n", usage.empty() ? "usage:" : "      ", line);
    if (!command->options.empty())
      own_options += fmt::format("\nfurther options of espy {}:\n{}", command->word, option_lines(command->options));
    for (const Example& example : command->examples)
      examples += fmt::format("  {}\n      {}\n", example.command_line, example.meaning);
  }
  return "espy traces Linux: it compiles a script to BPF, runs it in the kernel and shows what it saw.\n\n" + usage +
         "\noptions:\n" + option_lines(listed_options()) + own_options + "\nexamples:\n" + examples;
}

namespace {

int show_help(const Options&, const Host&) {
  std::fputs(help_text().c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kHelp = {
    .option = {'h', "help", "", "show this page"},
    .run = show_help,
};

}  // namespace espy::cli
