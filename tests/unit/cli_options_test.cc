// The command line: which command runs, what the rows set, and where words go.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/strings.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "cli/tool_options.h"
#include "tool/tool.h"

namespace espy::cli {
namespace {

Result<Options> parse(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse_options(pointers);
}

std::string error_of(std::vector<std::string> words) {
  const auto options = parse(std::move(words));
  return options ? "" : options.error().message;
}

// Those of two commands may be equal, as each is accepted only behind its command's word.
TEST(CliOptions, NamesOfACommandAreUnique) {
  const auto add = [](std::set<std::string>& names, const OptionRow& row) {
    const std::string short_name(row.short_name != 0 ? 1 : 0, row.short_name);
    for (const std::string& name : {short_name, std::string(row.long_name)})
      EXPECT_TRUE(name.empty() || names.insert(name).second) << name;
  };
  std::set<std::string> common;
  for (const OptionRow& row : option_rows()) add(common, row);
  for (const Command* command : commands())
    if (command->has_option()) add(common, command->option);
  // The options of a command hide general ones: -d of `espy count`.
  for (const Command* command : commands()) {
    std::set<std::string> names;
    for (const OptionRow& row : command->options) add(names, row);
  }
}

TEST(CliOptions, WordsBeforeAProgramAreItsArguments) {
  const auto options = parse({"2", "four", "-e", "begin { }", "6"});
  ASSERT_TRUE(options.has_value());
  EXPECT_FALSE(options->script.file.has_value());
  EXPECT_EQ(options->config.arguments.positional, (std::vector<std::string>{"2", "four", "6"}));
}

TEST(CliOptions, WatchTakesAnIntervalAndText) {
  EXPECT_EQ(parse({"--watch", "1.5s", "x.bt"})->output.watch_interval_ns, 1'500'000'000u);
  EXPECT_EQ(error_of({"--watch", "1ms", "x.bt"}), "--watch 1ms is too often: 100ms is the shortest interval");
  EXPECT_EQ(error_of({"--watch", "x.bt"}), "--watch takes an interval such as 1s, 500ms or 1m, not `x.bt`");
  EXPECT_EQ(error_of({"--watch", "1s", "-f", "json", "x.bt"}), "--watch shows text: not with -f json");
}

TEST(CliOptions, AnOptionSetsTheFieldOfItsModule) {
  const auto options = parse({"--unsafe", "--dry-run", "-p", "7", "--debuginfo", "/a:/b", "-v", "x.bt", "1", "-2"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->config.allow_unsafe);
  EXPECT_TRUE(options->is_dry_run);
  ASSERT_EQ(options->config.tracee.processes.size(), 1u);
  EXPECT_EQ(options->config.tracee.processes[0].pid, 7u);
  EXPECT_EQ(options->symbols.debug_directories, (std::vector<std::string>{"/a", "/b", "/usr/lib/debug"}));
  EXPECT_TRUE(options->config.counting.losses);
  EXPECT_EQ(options->script.file, "x.bt");
  EXPECT_EQ(options->config.arguments.positional, (std::vector<std::string>{"1", "-2"}));
}

TEST(CliOptions, ProcessesAndNamesAreLists) {
  const auto options =
      parse({"-p", "12,13", "--pid=14", "-p", "13", "--comm", "web,1", "--comm=a-name-of-many-bytes", "x.bt"});
  ASSERT_TRUE(options) << options.error().message;
  std::vector<uint32_t> pids;
  for (const auto& process : options->config.tracee.processes) pids.push_back(process.pid);
  EXPECT_EQ(pids, (std::vector<uint32_t>{12, 13, 14}));
  EXPECT_EQ(options->config.tracee.thread_names, (std::vector<std::string>{"web,1", "a-name-of-many-"}));
  for (const char* wrong : {"12,", ",", "", "12,x", "0", "12 13", "-1"})
    EXPECT_FALSE(parse({"-p", wrong, "x.bt"})) << wrong;
  EXPECT_FALSE(parse({"--comm", "", "x.bt"}));
}

TEST(CliOptions, TheLastProgramCounts) { EXPECT_EQ(parse({"-e", "begin{}", "-e", "end{}"})->script.text, "end{}"); }

TEST(CliOptions, AModeIsAnotherNameOfTestAndBench) {
  EXPECT_TRUE(parse({"--mode", "test", "x.bt"})->config.runs_tests);
  EXPECT_TRUE(parse({"--mode=bench", "x.bt"})->config.runs_benchmarks);
  EXPECT_EQ(error_of({"--mode", "none", "x.bt"}), "--mode takes test or bench, not `none`");
}

TEST(CliOptions, ACommandIsChosenByItsWordOrItsOption) {
  EXPECT_EQ(parse({"-e", "begin{}"})->command, commands().front());
  EXPECT_EQ(parse({"trace", "f", "--depth", "2"})->command->word, "trace");
  EXPECT_EQ(parse({"x.bt", "--fmt"})->command->option.long_name, "fmt");
  EXPECT_EQ(parse({"-l", "t:*"})->argument, "t:*");
  EXPECT_EQ(parse({"info", "a", "b"})->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse({"list", "t:*"})->argument, "t:*");
  EXPECT_EQ(parse({"list", "t:*"})->command, parse({"-l", "t:*"})->command);
  EXPECT_EQ(parse({"format", "x.bt"})->script.file, "x.bt");
  EXPECT_EQ(parse({"-v", "trace", "f"})->command->word, "trace");
  EXPECT_EQ(parse({"run", "trace"})->script.file, "trace");
}

// Anybody can put a file of any name into a directory in which root works.
TEST(CliOptions, AFileNeverHidesACommandOrATool) {
  char path[] = "/tmp/options.XXXXXX";
  const std::string directory = ::mkdtemp(path), before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  for (const char* name : {"trace", "opensnoop", "mine"}) std::ofstream(name) << "begin { }";
  EXPECT_EQ(parse({"trace", "f"})->command->word, "trace");
  EXPECT_EQ(parse({"-q", "trace", "f"})->command->word, "trace");
  EXPECT_EQ(parse({"opensnoop"})->script.tool->name, "opensnoop");
  EXPECT_EQ(parse({"-v", "opensnoop"})->script.tool->name, "opensnoop");
  for (const char* file : {"./trace", "./opensnoop", "opensnoop.bt", "mine"}) {
    const auto options = parse({file});
    EXPECT_EQ(options->command, commands().front());
    EXPECT_EQ(options->script.file, file);
    EXPECT_EQ(options->script.tool, nullptr);
  }
  EXPECT_EQ(parse({"run", "opensnoop"})->script.file, "opensnoop");
  EXPECT_EQ(parse({"--", "opensnoop"})->script.file, "opensnoop");
  std::filesystem::current_path(before);
  std::filesystem::remove_all(directory);
}

TEST(CliOptions, WithoutWordsThereIsAPageToBeginWith) { EXPECT_EQ(parse({})->command, &start_page()); }

TEST(CliOptions, HelpOfACommandIsOnePage) {
  for (const auto& words :
       {std::vector<std::string>{"help", "trace"}, {"trace", "--help"}, {"--help", "trace"}, {"trace", "f", "-h"}}) {
    const auto options = parse(words);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->command->word, "help");
    EXPECT_EQ(options->names.front(), "trace");
  }
}

// A page fits on a screen, and shows how the command is used.
TEST(CliHelp, PagesAreShort) {
  const auto expect_short = [](std::string_view name, const std::string& page) {
    const std::vector<std::string_view> lines = split(page, '\n');
    EXPECT_LE(lines.size(), 61u) << name;  // the last is empty
    for (const std::string_view line : lines) EXPECT_LE(line.size(), 80u) << name << ": " << line;
  };
  for (const Command* command : commands()) {
    if (command->summary.empty()) continue;
    expect_short(command->word, help_of(*command));
    EXPECT_EQ(command->examples.size(), 2u) << command->word;
    EXPECT_FALSE(command->usage.empty()) << command->word;
    EXPECT_NE(help_text().find(command->summary), std::string::npos) << command->word;
    EXPECT_LE(command->summary.size(), 64u) << command->word;
    for (const std::string_view name : command->common) {
      const auto is_it = [&](const OptionRow& row) {
        return name.size() == 1 ? row.short_name == name[0] : row.long_name == name;
      };
      EXPECT_TRUE(std::ranges::any_of(option_rows(), is_it)) << command->word << ": " << name;
    }
  }
  expect_short("help", help_text());
  for (const OptionGroup& group : option_groups()) expect_short(group.word, help_of_options(group));
}

TEST(CliOptions, OptionsOfACommandAreUnknownToOthers) {
  EXPECT_EQ(error_of({"trace", "--depth", "2", "f"}), "");
  EXPECT_EQ(error_of({"--depth", "2", "x.bt"}), "`--depth` is an option of `espy trace` and `espy record`");
  EXPECT_EQ(error_of({"-n", "5", "x.bt"}), "`-n` is an option of `espy trace` and `espy strace`");
  // What follows the command of espy strace belongs to the command.
  EXPECT_EQ(parse({"strace", "-e", "read", "ls", "-l", "--all"})->names,
            (std::vector<std::string>{"ls", "-l", "--all"}));
  EXPECT_EQ(parse({"strace", "--", "-x", "-y"})->names, (std::vector<std::string>{"-x", "-y"}));
  EXPECT_EQ(error_of({"check", "--graph", "x.bt"}), "`--graph` is an option of `espy trace`");
}

TEST(CliOptions, AShortDumpTakesStagesIfTheyFollow) {
  EXPECT_EQ(parse({"-d", "ir,opt", "x.bt"})->stages.dumped, (std::vector<std::string>{"ir", "opt"}));
  const auto options = parse({"-d", "x.bt"});
  EXPECT_EQ(options->stages.dumped, (std::vector<std::string>{"ast", "ir", "bpf"}));
  EXPECT_EQ(options->script.file, "x.bt");
}

TEST(CliOptions, WhatIsMissingIsReported) {
  EXPECT_EQ(error_of({"-v"}), "there is no program to run");
  EXPECT_EQ(error_of({"trace"}), "`espy trace` needs an argument");
  EXPECT_EQ(error_of({"version", "x"}), "`espy version` takes no word `x`");
  EXPECT_EQ(error_of({"--follow", "x.bt"}), "--follow needs a process to follow");
  EXPECT_EQ(error_of({"-f", "jsn", "x.bt"}), "there is no output format `jsn`");
}

TEST(CliOptions, AReplayHasNoCostInTheKernel) {
  for (const std::string option : {"--cost", "--cost=5s", "--budget=2%", "--check-cost"}) {
    EXPECT_EQ(error_of({option, "-i", "r", "x.bt"}),
              "-i runs nothing in the kernel: --cost, --budget and --check-cost have no meaning there");
    EXPECT_EQ(error_of({option, "x.bt"}), "");
  }
  EXPECT_EQ(error_of({"-v", "-i", "r", "x.bt"}), "");
}

TEST(CliOptions, PartsAreOfARecording) {
  for (const std::string option : {"--from", "--to"}) {
    EXPECT_EQ(error_of({option, "1s", "x.bt"}), "--from and --to choose a part of a recording, and there is none");
    EXPECT_EQ(error_of({option, "1s", "-i", "r", "x.bt"}), "");
    EXPECT_EQ(error_of({option, "1s", "--record", "r", "x.bt"}), "");
  }
}

class OutputFiles : public testing::Test {
 protected:
  OutputFiles() {
    char path[] = "/tmp/options.XXXXXX";
    directory_ = ::mkdtemp(path);
  }
  ~OutputFiles() override { std::filesystem::remove_all(directory_); }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  std::string made(const std::string& name) const {
    std::ofstream(file(name)) << "precious";
    return file(name);
  }

  std::string directory_;
};

TEST_F(OutputFiles, AreDifferentFilesOfAReplay) {
  const std::string recording = made("r"), other = made("other"), in_ring = made("ring.000002");
  std::filesystem::create_hard_link(recording, file("linked"));
  std::filesystem::create_symlink(recording, file("symbolic"));
  for (const std::string& output : {recording, directory_ + "/./r", file("linked"), file("symbolic")})
    EXPECT_EQ(error_of({"-i", recording, "-o", output, "x.bt"}),
              "-o " + output + " would overwrite the recording that -i reads");
  EXPECT_EQ(error_of({"-i", file("ring"), "-o", in_ring, "x.bt"}),
            "-o " + in_ring + " would overwrite the recording that -i reads");
  for (const std::string& output : {other, file("new"), std::string("/dev/null")})
    EXPECT_EQ(error_of({"-i", recording, "-i", file("ring"), "-o", output, "x.bt"}), "");
}

// Also where neither is there yet.
TEST_F(OutputFiles, AreDifferentFilesOfARunThatIsRecorded) {
  const std::string recording = made("r");
  for (const std::string& output : {recording, file("new"), directory_ + "/../" + directory_.substr(5) + "/new"})
    EXPECT_EQ(error_of({"--record", output.ends_with("new") ? file("new") : recording, "-o", output, "x.bt"}),
              "-o " + output + " would overwrite the recording that --record writes");
  EXPECT_EQ(error_of({"--record", file("new"), "-o", recording, "x.bt"}), "");
  EXPECT_EQ(error_of({"--record", file("new"), "-o", file("output"), "x.bt"}), "");
  EXPECT_EQ(error_of({"record", "-o", recording, "t:a:b"}), "");
}

TEST_F(OutputFiles, AreNotTheScript) {
  const std::string script = made("s.bt");
  EXPECT_EQ(error_of({"-o", script, script}), "-o " + script + " would overwrite the script");
  EXPECT_EQ(error_of({"-o", file("new"), script}), "");
  EXPECT_EQ(error_of({"--record", script, script}), "--record " + script + " would overwrite the script");
  EXPECT_EQ(error_of({"--record", file("new"), script}), "");
}

// ---- Tools

Result<Options> parse_for_tool(tool::Tool tool, std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse_tool_options(std::make_shared<const tool::Tool>(std::move(tool)), pointers);
}

tool::Tool some_tool() {
  tool::Tool out;
  out.name = "count";
  out.options = {{"pid", "0", "only this process"}, {"all", "false", ""}, {"word", "\"a\"", ""}};
  out.knows_all_options = true;
  out.arguments = {"--format=json"};
  return out;
}

TEST(ToolOptions, ThoseOfTheScriptComeFirst) {
  const auto options = parse_for_tool(
      some_tool(), {"--pid", "5", "--all", "one", "--word=b", "-p", "7", "-2", "--", "--all=false", "x"});
  ASSERT_TRUE(options) << options.error().message;
  using Named = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(options->config.arguments.named, (Named{{"pid", "5"}, {"all", "true"}, {"word", "b"}, {"all", "false"}}));
  ASSERT_EQ(options->config.tracee.processes.size(), 1u);
  EXPECT_EQ(options->config.tracee.processes[0].pid, 7u);
  EXPECT_EQ(options->config.arguments.positional, (std::vector<std::string>{"one", "-2", "x"}));
  EXPECT_EQ(options->output.format, "json");
  EXPECT_FALSE(options->script.file);
}

TEST(ToolOptions, OthersAreRefused) {
  const auto error = [](std::vector<std::string> words) {
    const auto options = parse_for_tool(some_tool(), std::move(words));
    return options ? "" : options.error().message + "; " + options.error().hint;
  };
  EXPECT_EQ(error({"--wrod=b"}), "there is no option `--wrod`; did you mean `--word`?");
  EXPECT_EQ(error({"-l"}), "there is no option `-l`; --help lists them");
  EXPECT_EQ(error({"--include=a.h"}), "there is no option `--include`; --help lists them");
  EXPECT_EQ(error({"--pid"}), "--pid needs an argument; ");
  EXPECT_EQ(error({"--container="}), "--container needs a name, which is empty here; ");
  tool::Tool unchecked = some_tool();
  unchecked.knows_all_options = false;
  const auto options = parse_for_tool(unchecked, {"--other=1"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->config.arguments.named.front().first, "other");
}

TEST(ToolOptions, AValueOfTheWrongTypeIsRefusedOnce) {
  const auto error = [](std::vector<std::string> words) {
    const auto options = parse_for_tool(some_tool(), std::move(words));
    return options ? "" : options.error().message;
  };
  EXPECT_EQ(error({"--pid=abc"}), "--pid takes a number, not `abc`");
  EXPECT_EQ(error({"--pid", "abc"}), "--pid takes a number, not `abc`");
  EXPECT_EQ(error({"--", "--pid=abc"}), "--pid takes a number, not `abc`");
  EXPECT_EQ(error({"--all=5"}), "--all takes true or false, not `5`");
}

TEST(ToolOptions, TheLineOfUsageDeclaresTheParameters) {
  const auto head = tool::tool_head(
      "#!/usr/bin/env espy\n// size - what it shows.\n//\n//   size.bt [INTERVAL [COUNT]] [-- --min-us=N --all]\n"
      "//   INTERVAL  seconds\n//\n// BYTES\n\nbegin { }\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->name, "size");
  EXPECT_EQ(head->sentence, "what it shows.");
  EXPECT_EQ(head->arguments, "[INTERVAL [COUNT]] [--min-us=N --all]");
  EXPECT_EQ(head->parameters, (std::vector<std::string>{"INTERVAL", "COUNT"}));
  EXPECT_EQ(head->rest, "  INTERVAL  seconds\n\nBYTES\n");
  const auto error = [&](std::vector<std::string> words) {
    const Status good = tool::check_parameters(*head, words);
    return good ? "" : good.error().message + "; " + good.error().hint;
  };
  EXPECT_EQ(error({"1", "5"}), "");
  EXPECT_EQ(error({"1s"}),
            "INTERVAL takes a whole number from 1 on, not `1s`; usage: size [INTERVAL [COUNT]] [--min-us=N --all]");
  EXPECT_EQ(error({"1", "2", "3"}),
            "size takes 2 arguments at most, and `3` is one more; "
            "usage: size [INTERVAL [COUNT]] [--min-us=N --all]");
  EXPECT_FALSE(tool::tool_head("// Some script.\nbegin { }\n"));
}

TEST(BundledTools, AreWhatTheirFilesSay) {
  ASSERT_GE(bundled_tools().size(), 40u);
  for (const BundledTool& each : bundled_tools()) {
    const auto tool = bundled_tool(each.name);
    ASSERT_TRUE(tool) << each.name;
    const auto head = tool::tool_head(tool->script);
    ASSERT_TRUE(head) << each.name;
    EXPECT_EQ(head->name, each.name);
    for (const check::ScriptOption& option : tool->options) {
      EXPECT_FALSE(option.doc.empty()) << each.name << " --" << option.name;
      const auto is_it = [&](const OptionRow& row) { return row.long_name == option.name; };
      EXPECT_FALSE(std::ranges::any_of(tool_option_rows(), is_it)) << each.name << ": espy has --" << option.name;
    }
    for (const std::string_view line : split(tool_page(*tool), '\n'))
      EXPECT_LE(line.size(), 105u) << each.name << ": " << line;
  }
  EXPECT_EQ(bundled_tool("../tools/opensnoop"), nullptr);
  EXPECT_EQ(bundled_tool("nosuch"), nullptr);
}

TEST(BundledTools, TakeTheirArgumentsAtTheCommandLine) {
  EXPECT_EQ(error_of({"runqlat", "abc"}), "INTERVAL takes a whole number from 1 on, not `abc`");
  EXPECT_EQ(error_of({"opensnoop", "5"}), "opensnoop takes no argument `5`");
  EXPECT_EQ(error_of({"opensnoop", "-p", "abc"}), "`abc` is not a process id");
  EXPECT_EQ(error_of({"opensnoop", "--faild"}), "there is no option `--faild`");
  EXPECT_EQ(error_of({"runqlat", "abc", "--help"}), "");
  const auto options = parse({"opensnoop", "--failed", "-p", "7"});
  ASSERT_TRUE(options);
  ASSERT_EQ(options->config.tracee.processes.size(), 1u);
  EXPECT_EQ(options->config.tracee.processes[0].pid, 7u);
  EXPECT_EQ(options->config.arguments.named.front().first, "failed");
}

TEST(ToolOptions, HelpNeedsNoScript) {
  const auto options = parse_for_tool(some_tool(), {"--help"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->command, tool_commands().front());
}

TEST(ToolOptions, SomeAreBuiltIn) {
  const auto built_in = [](std::vector<std::string> words) {
    words.insert(words.begin(), "build");
    const auto options = parse(std::move(words));
    const auto arguments = built_in_arguments(*options, options->command->options);
    return arguments ? *arguments : std::vector<std::string>{arguments.error().message};
  };
  EXPECT_EQ(built_in({"a.bt", "-o", "a", "-f", "json", "--strict", "-I", "include", "--systemd", "--on", "k"}),
            (std::vector<std::string>{"--format=json", "--strict"}));
  EXPECT_EQ(built_in({"-p", "1", "a.bt"}),
            (std::vector<std::string>{"--pid is not a part of a tool: give it to the tool when you start it"}));
  EXPECT_EQ(built_in({"-i", "file", "a.bt"}), (std::vector<std::string>{"--input has no meaning for a tool"}));
}

}  // namespace
}  // namespace espy::cli
