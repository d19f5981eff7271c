// Command: what espy can be asked to do. Each command has a row in a file of cli/commands and a line in
// all_commands.cc.
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
  kScript,   // FILE, unless -e gives the program, then the script's arguments; required
  kPattern,  // at most one; a second word is the FILE of a script
  kNames,    // at least one
};

struct Example {
  std::string_view command_line, meaning;
};

// A command is chosen by its word, the first of the command line, or by its option, or it is the default.
struct Command {
  std::string_view word = {};               // "trace"
  OptionRow option = {};                    // {'l', "list", ...}; `set` may be null
  std::string_view option_follows = {};     // the option after which lists show it; empty: at the end
  Operands operands = Operands::kNone;      //
  bool takes_script_arguments = false;      // words behind `--` are the arguments of a script, not names
  std::span<const OptionRow> options = {};  // accepted only behind the word; they set Options::own
  std::shared_ptr<CommandOptions> (*make_options)() = nullptr;
  std::span<const std::string_view> usage = {};  // what follows `espy`, a line each
  std::span<const Example> examples = {};
  int (*run)(const Options& options, const Host& host) = nullptr;  // returns the exit status; has printed all errors

  bool has_option() const { return option.short_name != 0 || !option.long_name.empty(); }
};

// In the order of --help; the first is the default. (cli/commands/all_commands.cc)
std::span<const Command* const> commands();

// The rows of options that every command accepts, with those that choose a command, in the order of --help.
std::vector<OptionRow> listed_options();

std::string help_text();

}  // namespace espy::cli
