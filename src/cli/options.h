// The command line: a table of options, and what they set. An option is one row in options.cc; the options of a
// command are rows in the command's file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "run/run_options.h"
#include "tool/tool.h"

namespace espy::cli {

struct Command;
struct OptionRow;

// What the options of one command set; each command derives its own.
struct CommandOptions {
  virtual ~CommandOptions() = default;
  virtual bool makes_recordings() const { return false; }
  virtual bool replaces_names() const { return false; }  // the command needs no names as operands
};

struct Options : run::RunOptions {
  const Command* command = nullptr;
  std::shared_ptr<CommandOptions> own;  // of a command that is chosen by a word; null if it has no options
  std::vector<std::pair<const OptionRow*, std::string>> typed;  // the options of the command line, with their arguments
  std::string argument;                                         // PATTERN of `espy list`, PART of --reference
  std::vector<std::string> names;                               // of commands with names as operands
};

struct OptionRow {
  char short_name = 0;                                                   // 0: none
  std::string_view long_name = {};                                       // without dashes; empty: none
  std::string_view argument = {};                                        // "FILE"; empty: takes none
  std::string_view doc = {};                                             // one line
  Status (*set)(Options& options, std::string_view argument) = nullptr;  // the error is one sentence
  std::vector<std::string_view> (*choices)() = nullptr;                  // what the argument can be; null: anything
  std::string (*make_doc)() = nullptr;  // instead of `doc`, for a text that is made from another table
  // An option without an argument takes the next word as one if this accepts it.
  bool (*accepts)(std::string_view word) = nullptr;
  bool is_argument_optional = false;  // of a long option: only `--name=ARGUMENT` has one

  bool is_listed() const { return !doc.empty() || make_doc != nullptr; }
};

// Setters for rows. The path leads from Options to the member: `set_flag<&Options::config, &spec::Config::runs_tests>`.
template <auto... kPath>
Status set_flag(Options& options, std::string_view) {
  (options.*....*kPath) = true;
  return {};
}

template <auto... kPath>
Status set_text(Options& options, std::string_view text) {
  (options.*....*kPath) = text;
  return {};
}

template <auto... kPath>
Status add_text(Options& options, std::string_view text) {
  (options.*....*kPath).emplace_back(text);
  return {};
}

// Returns the number; the error names `option`. Requires a number from 1 on.
Result<uint64_t> parse_count(std::string_view option, std::string_view text);
// Returns nanoseconds: of "1.5", "10s", "200ms", "2m", "1h". `what` continues the error about the option.
Result<uint64_t> parse_time(std::string_view option, std::string_view what, std::string_view text);
// Sets --duration, for the rows of commands that have it by another short name.
Status set_duration(Options& options, std::string_view text);

// Rows about one subject. `espy help options WORD` shows them.
struct OptionGroup {
  std::string_view word, title;
  std::span<const OptionRow> rows;
};

// The rows that belong to no command, by group, and all of them.
std::span<const OptionGroup> option_groups();
std::span<const OptionRow> option_rows();

// `arguments` is argv without its first element. What follows the script's name belongs to the script.
Result<Options> parse_options(std::span<char* const> arguments);
// The same for the command line of a tool.
Result<Options> parse_tool_options(std::shared_ptr<const tool::Tool> tool, std::span<char* const> arguments);

// Fails if the file that `option` writes is the script. Scripts named "-" are read from standard input.
Status check_script_is_kept(std::string_view option, const std::string& file, const std::string& script);

// "-p, --pid PID"
std::string option_names(const OptionRow& row);
std::string option_doc(const OptionRow& row);
// The line of an option in --help.
std::string option_line(const OptionRow& row);
// The same for short pages: of an option with choices, only what they are.
std::string short_option_line(const OptionRow& row);

}  // namespace espy::cli
