#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "cli/reference.h"
#include "cli/tool_options.h"
#include "run/environment.h"
#include "run/run_script.h"

namespace espy::cli {

// ---- The pages of `espy help`, from the rows of commands and options.

std::string option_line(const OptionRow& row) {
  return run::help_row((row.short_name != 0 ? "" : "    ") + option_names(row), option_doc(row));
}

std::string short_option_line(const OptionRow& row) {
  if (row.choices == nullptr || row.make_doc == nullptr) return option_line(row);
  return run::help_row((row.short_name != 0 ? "" : "    ") + option_names(row),
                       fmt::format("one of {}", fmt::join(row.choices(), ", ")));
}

namespace {

constexpr size_t kWordColumn = 14, kGroupColumn = 15;  // of lists of words

struct TopicRow {
  Topic topic;
  std::string_view title;
};

constexpr TopicRow kTopics[] = {{Topic::kTrace, "Trace"},
                                {Topic::kLookUp, "Look up"},
                                {Topic::kScripts, "Write scripts"},
                                {Topic::kMachine, "This machine"}};

std::string usage_lines(std::span<const std::string_view> usage) {
  std::string out;
  for (const std::string_view line : usage) out += fmt::format("{} espy {}\n", out.empty() ? "usage:" : "      ", line);
  return out;
}

std::string example_lines(std::span<const Example> examples) {
  std::string out;
  for (const Example& example : examples) out += fmt::format("  {}\n      {}\n", example.command_line, example.meaning);
  return out.empty() ? out : "\nexamples:\n" + out;
}

std::string common_lines(const Command& command) {
  std::string out;
  for (const OptionGroup& group : option_groups()) {
    std::string lines;
    for (const OptionRow& row : group.rows)
      if (is_common(command, row)) lines += short_option_line(row);
    if (!lines.empty()) out += fmt::format("\n{}:\n{}", group.title, lines);
  }
  return out;
}

std::string command_lines(Topic topic) {
  std::string out;
  for (const Command* command : commands())
    if (command->topic == topic && !command->summary.empty())
      out += run::help_row(command->word, command->summary, kWordColumn);
  return out;
}

constexpr std::string_view kMoreHelp = R"(
More help:
  espy help COMMAND       explain a command; `espy COMMAND --help` is the same
  espy help options       all options, in pages
  espy help target        what to write for the TARGET of a command
)";

constexpr std::string_view kFirstSteps = R"(
Begin here:
  espy examples                      one-liners to try
  espy list 'tracepoint:sched:*'     what can be traced
  sudo espy trace -c 'ls' 't:syscalls:sys_enter_openat'
                                     the files that a command opens
  sudo espy -e 'tracepoint:syscalls:sys_enter_* { @[comm] = count(); }'
                                     system calls by program, until Ctrl-C
  espy help                          all commands
)";

constexpr std::string_view kTargetPage =
    R"page(A TARGET is a function or an event. Put quotes around it if it has parentheses
or wildcards.

functions of the kernel:
  vfs_read                           all arguments and the result
  'vfs_read(count, return)'          these values; `return` is the result
  'vfs_read(count > 100, count)'     only calls for which this holds
  'vfs_read(return < 0)'             only results that are errors
  'vfs_*'                            all functions with such names

functions of programs and libraries:
  ./shop:request                     FILE:FUNCTION
  './shop:shop::twice'               C++, all overloads
  './shop:"shop::twice(int)"'        C++, one overload
  libc:malloc                        a library, as ld.so(8) finds it
  './shop:*'                         all functions of the file

events:
  t:sched:sched_switch               tracepoint:CATEGORY:EVENT
  usdt:FILE:PROVIDER:NAME            a static probe of a program
  rawtracepoint:sched_wakeup         any other attach point of the language

A list in parentheses has comparisons (== != > >= < <=), which the kernel
checks, and values, which are shown. Both may be expressions of the language:
  'vfs_read(comm == "dd", str(file->f_path.dentry->d_name.name))'

Which names there are:
  espy list 'WORD'                   probes of the kernel that have WORD
  espy list 'uprobe:FILE:*'          functions of a file
  espy info NAME                     arguments and types of a name
)page";

}  // namespace

std::string help_text() {
  std::string out =
      "espy traces Linux: it shows what programs and the kernel do while they run.\n\n"
      "usage: espy COMMAND [OPTION...] [WORD...]\n"
      "       espy [OPTION...] FILE.bt | DIRECTORY/FILE | -e 'PROGRAM'\n";
  for (const TopicRow& row : kTopics) out += fmt::format("\n{}:\n{}", row.title, command_lines(row.topic));
  return out + std::string(kMoreHelp);
}

std::string help_of(const Command& command) {
  std::string out = fmt::format("espy {}: {}\n\n{}", command.word, command.summary, usage_lines(command.usage));
  if (!command.notes.empty()) out += fmt::format("\n{}", command.notes);
  if (!command.options.empty()) out += fmt::format("\nOptions of espy {}:\n", command.word);
  for (const OptionRow& row : command.options) out += option_line(row);
  out += common_lines(command);
  if (!command.common.empty()) out += "\n`espy help options` has all general options.\n";
  return out + example_lines(command.examples);
}

std::string help_of_options(const OptionGroup& group) {
  std::string out = fmt::format("{}:\n", group.title);
  for (const OptionRow& row : group.rows) out += option_line(row);
  return out;
}

namespace {

std::vector<std::string_view> short_names(const OptionGroup& group) {
  std::vector<std::string_view> out;
  for (const OptionRow& row : group.rows) {
    const std::string_view name = row.long_name.empty() ? std::string_view(&row.short_name, 1) : row.long_name;
    out.push_back(name);
  }
  return out;
}

// The groups, with the names of their options.
std::string option_index() {
  std::string out = "General options. `espy help options WORD` explains a group, `all` every option.\n\n";
  for (const OptionGroup& group : option_groups()) {
    std::string names;
    for (const std::string_view name : short_names(group))
      names += fmt::format("{}{}{}", names.empty() ? "" : " ", name.size() == 1 ? "-" : "--", name);
    out += run::help_row(group.word, names, kGroupColumn);
  }
  out += "\nOlder spellings of commands:\n";
  for (const OptionRow& row : old_spellings()) out += option_line(row);
  return out;
}

Result<std::string> option_page(std::string_view word) {
  if (word.empty()) return option_index();
  std::string all;
  for (const OptionGroup& group : option_groups()) {
    if (word == group.word) return help_of_options(group);
    all += (all.empty() ? "" : "\n") + help_of_options(group);
  }
  if (word == "all") return all;
  std::vector<std::string_view> words;
  for (const OptionGroup& group : option_groups()) words.push_back(group.word);
  return fail(fmt::format("there is no group of options `{}`", word), 0,
              fmt::format("there are {}", fmt::join(words, ", ")));
}

Result<std::string> page(std::span<const std::string> words) {
  if (words.empty()) return help_text();
  const std::string& word = words[0];
  if (const Command* command = find_command(word)) return help_of(*command);
  if (const auto tool = bundled_tool(word)) return tool_page(*tool);
  if (word == "options") return option_page(words.size() > 1 ? words[1] : "");
  if (word == "target" || word == "targets") return std::string(kTargetPage);
  std::vector<std::string_view> known = {"options", "target"};
  for (const Command* command : commands())
    if (!command->word.empty()) known.push_back(command->word);
  for (const BundledTool& tool : bundled_tools()) known.push_back(tool.name);
  const std::string near = nearest(word, known);
  return fail(fmt::format("there is no help for `{}`", word), 0,
              near.empty() ? fmt::format("espy help lists the commands; espy info {} looks for a name", word)
                           : fmt::format("did you mean `espy help {}`?", near));
}

int show_help(const Options& options, const Host&) {
  const auto text = page(options.names);
  if (!text) return complain(text.error());
  std::fputs(text->c_str(), stdout);
  return EXIT_SUCCESS;
}

// `echo '...' | espy` reads nothing.
bool has_piped_input() {
  struct stat input = {};
  return ::fstat(STDIN_FILENO, &input) == 0 &&
         (S_ISFIFO(input.st_mode) || (S_ISREG(input.st_mode) && input.st_size > 0));
}

int show_start(const Options&, const Host&) {
  if (has_piped_input()) return complain({"a script on the standard input needs `-`: espy -"});
  std::fputs(
      ("espy traces Linux: it shows what programs and the kernel do while they run.\n" + std::string(kFirstSteps))
          .c_str(),
      stdout);
  return EXIT_FAILURE;
}

constexpr std::string_view kHelpUsage[] = {"help [COMMAND]", "help options [GROUP]", "help target"};
constexpr Example kHelpExamples[] = {{"espy help trace", "explain a command"},
                                     {"espy help options output", "explain the options about output"}};

}  // namespace

extern const Command kHelp = {
    .word = "help",
    .summary = "explain a command, the options, or TARGETs",
    .topic = Topic::kLookUp,
    .option = {'h', "help", "", "show help, of the command before it"},
    .operands = Operands::kOptionalNames,
    .usage = kHelpUsage,
    .examples = kHelpExamples,
    .run = show_help,
};

const Command& start_page() {
  static constexpr Command kStart = {.run = show_start};
  return kStart;
}

// ---- espy examples: the one-liners of the tutorial, by topic.

namespace {

struct Lesson {
  std::string_view title;
  std::string_view text;
  std::vector<std::string_view> commands;
};

// A lesson begins with "## N. TITLE"; its commands are the lines with a prompt, "# espy ...", in its blocks.
std::vector<Lesson> lessons() {
  const std::string_view tutorial = bundled_file("docs/start/tutorial.md");
  std::vector<Lesson> out;
  for (size_t begin = tutorial.find("\n## "); begin != tutorial.npos;) {
    const size_t end = tutorial.find("\n## ", begin + 1);
    Lesson lesson{.title = {}, .text = tutorial.substr(begin + 1, end - begin - 1)};
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
    return complain({fmt::format("no example has `{}`", options.argument), 0, "espy examples shows all"});
  std::fputs(out.c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kExamplesUsage[] = {"examples [WORD]"};
constexpr std::string_view kExamplesNotes = "docs/start/tutorial.md explains them.\n";
constexpr Example kExampleRows[] = {{"espy examples", "print all one-liners"},
                                    {"espy examples stack", "print one-liners about stacks"}};

}  // namespace

extern const Command kExamples = {
    .word = "examples",
    .summary = "print one-liners to try",
    .topic = Topic::kLookUp,
    .option = {0, "examples", "", "the same as `espy examples`"},
    .operands = Operands::kPattern,
    .usage = kExamplesUsage,
    .notes = kExamplesNotes,
    .examples = kExampleRows,
    .run = show_examples,
};

// ---- --reference: the generated parts of the documents (scripts/make-docs).

namespace {

int show_reference(const Options& options, const Host&) {
  const spec::Registry registry = run::make_registry();
  std::string text;
  for (const std::span<const ReferencePart> parts : {reference_pages(), shells()})
    for (const ReferencePart& part : parts)
      if (part.name == options.argument) text = part.text(registry);
  if (options.argument == "mdoc") text = options_mdoc();
  if (text.empty()) return complain({"--reference takes a page of docs/reference, mdoc, bash, zsh or fish"});
  std::fputs(text.c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kReference = {
    .option = {0, "reference", "PART", "", set_text<&Options::argument>},
    .run = show_reference,
};

}  // namespace espy::cli
