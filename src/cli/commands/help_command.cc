#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/reference.h"
#include "run/environment.h"
#include "run/run_script.h"
#include "tutorial_text.h"

namespace espy::cli {

namespace {

int show_version(const Options&, const Host&) {
  std::puts("espy " ESPY_VERSION);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kVersion = {
    .option = {'V', "version", "", "show the version"},
    .run = show_version,
};

// ---- --help, from the rows of commands and options.

std::string option_line(const OptionRow& row) {
  return run::help_row((row.short_name != 0 ? "" : "    ") + option_names(row), option_doc(row));
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

// ---- --examples: the one-liners of the tutorial, by topic.

namespace {

struct Lesson {
  std::string_view title;
  std::string_view text;
  std::vector<std::string_view> commands;
};

// A lesson begins with "## N. TITLE"; its commands are the lines with a prompt, "# espy ...", in its blocks.
std::vector<Lesson> lessons() {
  constexpr std::string_view kTutorial = kTutorialText;
  std::vector<Lesson> out;
  for (size_t begin = kTutorial.find("\n## "); begin != kTutorial.npos;) {
    const size_t end = kTutorial.find("\n## ", begin + 1);
    Lesson lesson{.title = {}, .text = kTutorial.substr(begin + 1, end - begin - 1)};
    for (const std::string_view line : split(lesson.text, '\n')) {
      if (line.starts_with("## ")) lesson.title = trim(line.substr(line.find('.') + 1));
      if (line.starts_with("# espy ")) lesson.commands.push_back(line.substr(2));
    }
    out.push_back(std::move(lesson));
    begin = end;
  }
  return out;
}

bool has(std::string_view text, std::string_view lower_word) {
  return to_lower(text).find(lower_word) != std::string::npos;
}

// A lesson with the word in its title is shown with all of its commands; of others, the commands that have the word.
std::string examples(std::string_view word) {
  std::string out;
  for (const Lesson& lesson : lessons()) {
    const bool is_about_it = has(lesson.title, word);
    std::string shown;
    for (const std::string_view command : lesson.commands)
      if (is_about_it || has(command, word)) shown += fmt::format("    {}\n", command);
    if (!shown.empty()) out += fmt::format("{}{}\n{}", out.empty() ? "" : "\n", lesson.title, shown);
  }
  return out;
}

int show_examples(const Options& options, const Host&) {
  const std::string out = examples(to_lower(options.argument));
  if (out.empty())
    return complain({fmt::format("no example has `{}`", options.argument), 0, "espy --examples shows all"});
  std::fputs(out.c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kExamplesUsage[] = {"--examples [WORD]"};
constexpr Example kExampleRows[] = {{"espy --examples stack", "one-liners on a topic; docs/tutorial.md explains them"}};

}  // namespace

extern const Command kExamples = {
    .option = {0, "examples", "", "print one-liners, those with a word or all, and end"},
    .operands = Operands::kPattern,
    .usage = kExamplesUsage,
    .examples = kExampleRows,
    .run = show_examples,
};

// ---- --reference: the generated parts of the documents (scripts/make-docs).

namespace {

int show_reference(const Options& options, const Host&) {
  const spec::Registry registry = run::make_registry();
  const auto shell = std::ranges::find(shells(), options.argument, &ShellRow::name);
  std::string text;
  if (options.argument == "manual") {
    text = reference_markdown(registry);
  } else if (options.argument == "options") {
    text = options_mdoc();
  } else if (shell != shells().end()) {
    text = shell->words(registry);
  } else {
    return complain({"--reference takes manual, options, or the name of a shell: bash, zsh or fish"});
  }
  std::fputs(text.c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kReference = {
    .option = {0, "reference", "PART", "", set_text<&Options::argument>},
    .run = show_reference,
};

}  // namespace espy::cli
