// --examples: the one-liners of the tutorial, by topic.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/command.h"
#include "tutorial_text.h"

namespace espy::cli {

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

constexpr std::string_view kUsage[] = {"--examples [WORD]"};
constexpr Example kExampleRows[] = {{"espy --examples stack", "one-liners on a topic; docs/tutorial.md explains them"}};

}  // namespace

extern const Command kExamples = {
    .option = {0, "examples", "", "print one-liners, those with a word or all, and end"},
    .operands = Operands::kPattern,
    .usage = kUsage,
    .examples = kExampleRows,
    .run = show_examples,
};

}  // namespace espy::cli
