// cli: the command line.
//
// Takes argv; parses it into Options by a table (options.h), and runs the command that it names. Each command has a row
// in a file of cli/commands and a line in all_commands.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "run/environment.h"
#include "run/host.h"

namespace espy::cli {

using run::complain;
using run::Environment;
using run::Host;
using run::report;

// The words of the command line that are not options.
enum class Operands : uint8_t {
  kNone,
  kScript,         // FILE, unless -e gives the program, then the script's arguments; required
  kPattern,        // at most one; a second word is the FILE of a script
  kNames,          // at least one
  kOptionalNames,  // any number
  kCommandLine,    // a command with its arguments, to the end of the command line
};

// Where the list of commands shows it.
enum class Topic : uint8_t { kTrace, kLookUp, kScripts, kMachine };

struct Example {
  std::string_view command_line, meaning;
};

// A command is chosen by its word, the first word of the command line that is not an option, or by its option, or it is
// the default.
struct Command {
  std::string_view word = {};               // "trace"
  std::string_view alias = {};              // another word for it, which people know; empty: none
  std::string_view summary = {};            // for the list of commands: begins with a verb
  Topic topic = Topic::kTrace;              //
  OptionRow option = {};                    // an older spelling: {'l', "list", ...}; `set` may be null
  Operands operands = Operands::kNone;      //
  bool takes_script_arguments = false;      // words after `--` are the arguments of a script, not names
  std::span<const OptionRow> options = {};  // accepted only after the word; they set Options::own
  std::shared_ptr<CommandOptions> (*make_options)() = nullptr;
  std::span<const std::string_view> usage = {};   // what follows `espy`, a line each
  std::string_view notes = {};                    // lines of its help page that follow the usage; ends with a newline
  std::span<const std::string_view> common = {};  // general options that its page shows, by long name, or "e", "I"
  std::span<const Example> examples = {};
  int (*run)(const Options& options, const Host& host) = nullptr;  // returns the exit status; has printed all errors

  bool has_option() const { return option.short_name != 0 || !option.long_name.empty(); }
};

// In the order of lists; the first is the default. (cli/commands/all_commands.cc)
std::span<const Command* const> commands();

// Whether the command's page shows this general option.
bool is_common(const Command& command, const OptionRow& row);

// Returns null if there is no such command.
const Command* find_command(std::string_view word);

// What `espy` without arguments does.
const Command& start_page();

// The older spellings of commands, as options: -l, --info, ...
std::vector<OptionRow> old_spellings();

// ---- Pages of `espy help`, of lines of 80 columns. (cli/commands/help_command.cc)

std::string help_text();  // `espy help`
std::string help_of(const Command& command);
std::string help_of_options(const OptionGroup& group);

}  // namespace espy::cli
