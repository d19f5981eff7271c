// The command line: which command runs, what the rows set, and where words go.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "cli/command.h"
#include "cli/tool_options.h"

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
  for (const Command* command : commands()) {
    std::set<std::string> names = common;
    for (const OptionRow& row : command->options) add(names, row);
  }
}

TEST(CliOptions, CommandsFollowAnExistingOption) {
  for (const Command* command : commands()) {
    if (command->option_follows.empty()) continue;
    const auto is_named = [&](const OptionRow& row) {
      return row.long_name == command->option_follows ||
             std::string_view(&row.short_name, 1) == command->option_follows;
    };
    EXPECT_TRUE(std::ranges::any_of(option_rows(), is_named)) << command->option_follows;
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
  EXPECT_EQ(options->config.tracee.pid, 7u);
  EXPECT_EQ(options->symbols.debug_directories, (std::vector<std::string>{"/a", "/b", "/usr/lib/debug"}));
  EXPECT_TRUE(options->config.counting.losses);
  EXPECT_EQ(options->script.file, "x.bt");
  EXPECT_EQ(options->config.arguments.positional, (std::vector<std::string>{"1", "-2"}));
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
}

TEST(CliOptions, OptionsOfACommandAreUnknownToOthers) {
  EXPECT_EQ(error_of({"trace", "--depth", "2", "f"}), "");
  EXPECT_EQ(error_of({"--depth", "2", "x.bt"}), "there is no option `--depth`");
}

TEST(CliOptions, AShortDumpTakesStagesIfTheyFollow) {
  EXPECT_EQ(parse({"-d", "ir,opt", "x.bt"})->stages.dumped, (std::vector<std::string>{"ir", "opt"}));
  const auto options = parse({"-d", "x.bt"});
  EXPECT_EQ(options->stages.dumped, (std::vector<std::string>{"ast", "ir", "bpf"}));
  EXPECT_EQ(options->script.file, "x.bt");
}

TEST(CliOptions, WhatIsMissingIsReported) {
  EXPECT_EQ(error_of({}), "there is no program to run");
  EXPECT_EQ(error_of({"trace"}), "there is nothing to look at");
  EXPECT_EQ(error_of({"--follow", "x.bt"}), "--follow needs a process to follow");
  EXPECT_EQ(error_of({"-f", "jsn", "x.bt"}), "Invalid output format \"jsn\"");
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
  EXPECT_EQ(options->config.tracee.pid, 7u);
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
