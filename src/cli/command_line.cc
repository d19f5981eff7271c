// From argv to Options: which command runs, what the options set, where words go, and what does not go together.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/strings.h"
#include "base/untrusted_file.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/tool_options.h"
#include "tool/tool.h"

namespace espy::cli {

namespace {

// A row that can be typed, and the command that it chooses; null: none.
struct Typed {
  const OptionRow* row = nullptr;
  const Command* chosen = nullptr;
};

// "`-a`, `-b` and `-c`"
std::string listed(const std::vector<std::string>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i)
    out += fmt::format("{}`{}`", i == 0 ? "" : i + 1 == items.size() ? " and " : ", ", items[i]);
  return out;
}

// The first word that is not an option is a command; otherwise it is the file of a script. What follows the script
// belongs to the script, except options of espy. A file never hides a command: a file in the current directory can be
// anybody's.
class Parser {
 public:
  explicit Parser(std::span<char* const> arguments) : arguments_(arguments) {
    options_.command = commands().front();
    for (const OptionRow& row : option_rows()) rows_.push_back({&row});
    for (const Command* command : commands())
      if (command->has_option()) rows_.push_back({&command->option, command});
  }
  Parser(std::shared_ptr<const tool::Tool> tool, std::span<char* const> arguments) : arguments_(arguments) {
    options_.command = commands().front();
    options_.script.tool = std::move(tool);
    use_tool_rows();
  }

  Result<Options> parse() {
    if (options_.script.tool) TRY_STATUS(take_built_in());
    while (next_ < arguments_.size()) {
      const std::string_view word = arguments_[next_++];
      if (word == "--") {
        TRY_STATUS(take_named());
      } else if (word.starts_with("--")) {
        TRY_STATUS(take_long(word));
      } else if (word.size() > 1 && word[0] == '-' && !is_script_argument()) {
        TRY_STATUS(take_short(word));
      } else {
        TRY_STATUS(take_word(word));
      }
    }
    if (options_.script.tool && options_.command == commands().front())
      if (const auto head = tool::tool_head(options_.script.tool->script))
        TRY_STATUS(tool::check_parameters(*head, options_.config.arguments.positional));
    return std::move(options_);
  }

 private:
  // Returns whether the word chooses a command. A script of that name is `./trace`.
  bool choose_command(std::string_view word) {
    const bool is_chosen = by_word_ != nullptr || options_.command != commands().front();
    const Command* command = is_chosen || has_script() ? nullptr : find_command(word);
    if (command == nullptr) return false;
    options_.command = by_word_ = command;
    if (command->make_options != nullptr) options_.own = command->make_options();
    std::vector<Typed> own;
    for (const OptionRow& row : command->options) own.push_back({&row});
    rows_.insert(rows_.begin(), own.begin(), own.end());
    return true;
  }

  // Returns whether the word chooses a tool that is part of espy. What follows is its command line.
  bool choose_tool(std::string_view word) {
    const bool is_chosen = by_word_ != nullptr || options_.command != commands().front();
    if (is_chosen || has_script()) return false;
    options_.script.tool = bundled_tool(word);
    if (!options_.script.tool) return false;
    use_tool_rows();
    return true;
  }

  void use_tool_rows() {
    rows_.clear();
    for (const OptionRow& row : tool_option_rows()) rows_.push_back({&row});
    for (const Command* command : tool_commands()) rows_.push_back({&command->option, command});
  }

  Typed find_short(char name) const {
    for (const Typed& typed : rows_)
      if (typed.row->short_name == name) return typed;
    return {};
  }

  Typed find_long(std::string_view name) const {
    for (const Typed& typed : rows_)
      if (!typed.row->long_name.empty() && typed.row->long_name == name) return typed;
    return {};
  }

  // The commands that have an option of this name: "espy trace", ...
  static std::vector<std::string> commands_with(std::string_view typed) {
    const auto is_it = [&](const OptionRow& row) {
      if (typed.starts_with("--")) return !row.long_name.empty() && row.long_name == typed.substr(2);
      return row.short_name != 0 && row.short_name == typed[1];
    };
    std::vector<std::string> out;
    for (const Command* command : commands())
      if (std::ranges::any_of(command->options, is_it)) out.push_back(fmt::format("espy {}", command->word));
    return out;
  }

  tl::unexpected<Error> unknown_option(std::string_view typed) const {
    const std::vector<std::string> others = options_.script.tool ? std::vector<std::string>() : commands_with(typed);
    if (!others.empty())
      return fail(fmt::format("`{}` is an option of {}", typed, listed(others)), 0,
                  fmt::format("{} {} ...", others.front(), typed));
    std::vector<std::string_view> names;
    for (const Typed& known : rows_)
      if (!known.row->long_name.empty()) names.push_back(known.row->long_name);
    if (options_.script.tool)
      for (const check::ScriptOption& own : options_.script.tool->options) names.push_back(own.name);
    const std::string near = typed.starts_with("--") ? nearest(typed.substr(2), names) : "";
    const std::string all = options_.script.tool  ? "--help lists them"
                            : by_word_ != nullptr ? fmt::format("espy help {} lists them", by_word_->word)
                                                  : "espy help options lists them";
    return fail(fmt::format("there is no option `{}`", typed), 0,
                near.empty() ? all : fmt::format("did you mean `--{}`?", near));
  }

  bool has_script() const { return options_.script.tool || options_.script.text || options_.script.file; }
  // "-1" behind a script is an argument of the script.
  bool is_script_argument() const {
    return has_script() && arguments_[next_ - 1][1] >= '0' && arguments_[next_ - 1][1] <= '9';
  }

  Status take_word(std::string_view word, bool is_behind_dashes = false) {
    if (!is_behind_dashes && (choose_command(word) || choose_tool(word))) return {};
    if (is_behind_dashes && options_.command->takes_script_arguments) {
      options_.config.arguments.positional.emplace_back(word);
      return {};
    }
    const Operands operands = options_.command->operands;
    if (operands == Operands::kNames || operands == Operands::kOptionalNames) {
      options_.names.emplace_back(word);
    } else if (operands == Operands::kCommandLine) {
      options_.names.emplace_back(word);
      while (next_ < arguments_.size()) options_.names.emplace_back(arguments_[next_++]);
    } else if (operands == Operands::kPattern && options_.argument.empty() && !has_script()) {
      options_.argument = word;
    } else if (operands == Operands::kNone && by_word_ != nullptr) {
      return fail(fmt::format("`espy {}` takes no word `{}`", by_word_->word, word), 0,
                  fmt::format("espy help {}", by_word_->word));
    } else if (!has_script()) {
      options_.script.file = word;
    } else {
      options_.config.arguments.positional.emplace_back(word);
    }
    return {};
  }

  Result<std::string_view> argument_of(std::string_view option) {
    if (next_ == arguments_.size()) return fail(fmt::format("{} needs an argument", option));
    return std::string_view(arguments_[next_++]);
  }

  Status apply(const Typed& typed, std::string_view argument) {
    if (typed.chosen != nullptr) options_.command = typed.chosen;
    // `espy trace --help` is `espy help trace`.
    if (typed.chosen != nullptr && typed.chosen->word == "help" && by_word_ != nullptr)
      options_.names.insert(options_.names.begin(), std::string(by_word_->word));
    options_.typed.emplace_back(typed.row, argument);
    return typed.row->set != nullptr ? typed.row->set(options_, argument) : Status();
  }

  Status take_long(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    const Typed typed = find_long(name);
    if (options_.script.tool) {
      const auto& own = options_.script.tool->options;
      const auto option = std::ranges::find(own, name, &check::ScriptOption::name);
      if (option != own.end()) return take_script_option(*option, word);
      // The script is checked for the kernel that runs, and finds its options then.
      if (typed.row == nullptr && !options_.script.tool->knows_all_options) return take_named(word);
    }
    if (typed.row == nullptr) return unknown_option(word.substr(0, equals));
    if (typed.row->argument.empty()) {
      if (equals != std::string_view::npos) return fail(fmt::format("--{} takes no argument", typed.row->long_name));
      return apply(typed, {});
    }
    if (equals != std::string_view::npos) return apply(typed, word.substr(equals + 1));
    if (typed.row->is_argument_optional) return apply(typed, {});
    return apply(typed, TRY(argument_of(word)));
  }

  Status take_short(std::string_view word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const Typed typed = find_short(word[i]);
      if (typed.row == nullptr) return unknown_option(fmt::format("-{}", word[i]));
      const bool may_take_next = typed.row->accepts != nullptr && word.size() == 2 && next_ < arguments_.size();
      if (may_take_next && typed.row->accepts(arguments_[next_])) return apply(typed, arguments_[next_++]);
      if (typed.row->argument.empty()) {
        TRY_STATUS(apply(typed, {}));
        continue;
      }
      const std::string_view rest = word.substr(i + 1);
      if (!rest.empty()) return apply(typed, rest);
      return apply(typed, TRY(argument_of(word)));
    }
    return {};
  }

  // The options of espy that the tool was built with: --name, --name=argument.
  Status take_built_in() {
    for (const std::string_view word : options_.script.tool->arguments) {
      const auto parts = split(word, '=');
      const Typed typed = parts[0].starts_with("--") ? find_long(parts[0].substr(2)) : Typed();
      if (typed.row == nullptr) return unknown_option(word);
      TRY_STATUS(apply(typed, parts.size() > 1 ? word.substr(parts[0].size() + 1) : std::string_view()));
    }
    return {};
  }

  // --name=VALUE, --name VALUE; of a switch --name alone, or --name=false.
  Status take_script_option(const check::ScriptOption& option, std::string_view word) {
    const size_t equals = word.find('=');
    std::string_view value = "true";
    if (equals != std::string_view::npos)
      value = word.substr(equals + 1);
    else if (!option.is_switch())
      value = TRY(argument_of(word));
    TRY_STATUS(tool::check_value(option, value));
    options_.config.arguments.named.emplace_back(option.name, value);
    return {};
  }

  // --name, or --name=value.
  Status take_named(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string name(word.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    if (options_.script.tool)
      for (const check::ScriptOption& option : options_.script.tool->options)
        if (option.name == name) return take_script_option(option, word);
    options_.config.arguments.named.emplace_back(name,
                                                 equals == std::string_view::npos ? "true" : word.substr(equals + 1));
    return {};
  }

  // Behind `--`: options of the script, and plain words as positional arguments. Which options the script of a file has
  // is known once it is read (take_script_words()).
  Status take_named() {
    if (options_.command->operands == Operands::kCommandLine)
      return next_ < arguments_.size() ? take_word(arguments_[next_++], true) : Status();
    if (!options_.script.tool && options_.command == commands().front())
      options_.script.words = std::vector<std::string>(arguments_.begin() + next_, arguments_.end());
    while (next_ < arguments_.size()) {
      const std::string_view word = arguments_[next_++];
      if (word.starts_with("--")) {
        TRY_STATUS(take_named(word));
      } else {
        TRY_STATUS(take_word(word, true));
      }
    }
    return {};
  }

  std::span<char* const> arguments_;
  size_t next_ = 0;
  const Command* by_word_ = nullptr;  // the command that a word has chosen
  std::vector<Typed> rows_;
  Options options_;
};

bool is_one_file(const std::string& one, const std::string& other) {
  const auto first = identity_of(one), second = identity_of(other);
  if (first && second) return first->device == second->device && first->inode == second->inode;
  if (first || second) return false;
  std::error_code failed;
  const auto path = std::filesystem::weakly_canonical(one, failed);
  return !failed && path == std::filesystem::weakly_canonical(other, failed);
}

}  // namespace

Status check_script_is_kept(std::string_view option, const std::string& file, const std::string& script) {
  if (script == "-" || !is_one_file(file, script)) return {};
  return fail(fmt::format("{} {} would overwrite the script", option, file), 0,
              fmt::format("name another file with {}", option));
}

namespace {

// `name`: a file, or the name of a ring of files.
bool is_of_recording(const std::string& file, const std::string& name) {
  if (is_one_file(file, name)) return true;
  return std::ranges::any_of(recording::find_ring_files(name),
                             [&](const recording::RingFile& each) { return is_one_file(file, each.path); });
}

// -o empties its file before anything is read.
Status check_output(const Options& options) {
  if (!options.output.file) return {};
  const std::string& file = *options.output.file;
  if (std::ranges::any_of(options.replay.files, [&](const std::string& name) { return is_of_recording(file, name); }))
    return fail(fmt::format("-o {} would overwrite the recording that -i reads", file), 0, "name another file with -o");
  if (options.record.file && is_of_recording(file, *options.record.file))
    return fail(fmt::format("-o {} would overwrite the recording that --record writes", file), 0,
                "name another file with -o");
  return options.script.file ? check_script_is_kept("-o", file, *options.script.file) : Status();
}

Status check_recordings(const Options& options) {
  const bool has_part = options.replay.from_ns > 0 || options.replay.to_ns < UINT64_MAX;
  if (has_part && options.replay.files.empty() && !options.record.file)
    return fail("--from and --to choose a part of a recording, and there is none", 0, "-i FILE");
  if (options.duration_ns > 0 && !options.replay.files.empty())
    return fail("--duration limits a run on this machine, not a recording", 0, "--to chooses a part of a recording");
  const bool has_cost = options.cost.needs_hook_costs();
  if (has_cost && !options.replay.files.empty())
    return fail("-i runs nothing in the kernel: --cost, --budget and --check-cost have no meaning there");
  if (options.record.file && options.script.file)
    TRY_STATUS(check_script_is_kept("--record", *options.record.file, *options.script.file));
  return check_output(options);
}

Status check_combination(const Options& options) {
  if (!options.config.tracee.processes.empty() && options.tracee.command)
    return fail("-p and -c cannot be used together");
  if (options.config.tracee.follows && options.config.tracee.processes.empty() && !options.tracee.command)
    return fail("--follow needs a process to follow", 0, "-p PID, or -c COMMAND");
  if (options.output.watch_interval_ns > 0 && options.output.format != "text")
    return fail(fmt::format("--watch shows text: not with -f {}", options.output.format), 0,
                "--listen serves a page and metrics during a run");
  if (!options.tracee.cgroup.empty() && !options.tracee.container.empty())
    return fail("--cgroup and --container cannot be used together");
  const bool has_group = !options.tracee.cgroup.empty() || !options.tracee.container.empty();
  if (has_group && options.tracee.command)
    return fail("-c cannot be used with --cgroup or --container", 0,
                "the command would run in the group of espy: start it in the other one yourself");
  if (!options.user.empty() && (options.config.runs_tests || options.config.runs_benchmarks))
    return fail("--user cannot be used with --test or --bench");
  TRY_STATUS(check_recordings(options));
  const Operands operands = options.command->operands;
  const bool replaces_names = options.own && options.own->replaces_names();
  if (operands == Operands::kNames && options.names.empty() && !replaces_names)
    return fail(
        fmt::format("`espy {}` needs an argument", options.command->word), 0,
        fmt::format("espy {}; `espy help {}` explains it", options.command->usage.front(), options.command->word));
  if (operands == Operands::kScript && !options.script.tool && !options.script.text && !options.script.file)
    return fail("there is no program to run", 0, "espy -e 'begin { printf(\"hello\\n\"); }', or espy FILE");
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<char* const> arguments) {
  if (arguments.empty()) {
    Options out;
    out.command = &start_page();
    return out;
  }
  Options options = TRY(Parser(arguments).parse());
  // The words before -e are positional arguments as well.
  if (options.script.text && options.script.file) {
    options.config.arguments.positional.insert(options.config.arguments.positional.begin(),
                                               *std::exchange(options.script.file, {}));
  }
  TRY_STATUS(check_combination(options));
  return options;
}

Result<Options> parse_tool_options(std::shared_ptr<const tool::Tool> tool, std::span<char* const> arguments) {
  Options options = TRY(Parser(std::move(tool), arguments).parse());
  TRY_STATUS(check_combination(options));
  return options;
}

}  // namespace espy::cli
