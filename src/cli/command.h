// Command: what espy can be asked to do. Each command has a row in a file of cli/commands and a line in
// all_commands.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/environment.h"
#include "cli/options.h"
#include "runtime/session.h"

namespace espy::cli {

// Called with the loaded program; may change the options of the session that runs it.
using PrepareSession = std::function<void(const program::Program&, Environment&, runtime::SessionOptions&)>;

// Whether this machine, this user and the process of -p allow a script to run.
Status check_can_run(const Options& options);

// Where a command works: this machine, or a simulated one in tests.
struct Host {
  std::function<Status(const Options&)> check_can_run = cli::check_can_run;
  std::function<Result<std::unique_ptr<Environment>>(const Options&)> open = open_environment;
  PrepareSession prepare = {};
};

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
