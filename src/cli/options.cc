// The options that belong to no command. An option that sets a field of RunOptions, or of spec::Config in it, is a row
// here and nothing else.
#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/strings.h"
#include "base/untrusted_file.h"
#include "cli/command.h"
#include "cli/tool_options.h"
#include "serve/http_server.h"

namespace espy::cli {

namespace {

using run::RunOptions;
using spec::Config;

// ---- Setters with a check

Result<uint32_t> parse_pid(std::string_view text, const std::string& message) {
  const auto pid = parse_int(text);
  if (!pid || *pid <= 0 || *pid > INT32_MAX) return fail(message);
  return static_cast<uint32_t>(*pid);
}

Status set_pid(Options& options, std::string_view text) {
  options.config.tracee.pid = TRY(parse_pid(text, fmt::format("`{}` is not a process id", text)));
  return {};
}

// An empty text, of a variable of the shell that is not set, would stand for no limit.
Status set_given(std::string_view option, std::string& to, std::string_view text) {
  if (text.empty()) return fail(fmt::format("{} needs a name, which is empty here", option));
  to = text;
  return {};
}

Status set_follow_new(Options& options, std::string_view) {
  options.config.tracee.follows = options.tracee.follows_new_only = true;
  return {};
}

Status set_cgroup(Options& options, std::string_view text) {
  return set_given("--cgroup", options.tracee.cgroup, text);
}
Status set_container(Options& options, std::string_view text) {
  return set_given("--container", options.tracee.container, text);
}
Status set_user(Options& options, std::string_view text) { return set_given("--user", options.user, text); }

Status add_unwound_pid(Options& options, std::string_view text) {
  const uint32_t pid = TRY(parse_pid(text, fmt::format("--dwarf-pid needs a process id, not `{}`", text)));
  options.tracee.unwound_pids.push_back(pid);
  return {};
}

// Returns the value with that name in a table of pairs; nullopt if there is none.
template <typename Value, size_t kCount>
std::optional<Value> value_of(const std::pair<std::string_view, Value> (&table)[kCount], std::string_view name) {
  const auto* found = std::ranges::find(table, name, &std::pair<std::string_view, Value>::first);
  return found != std::end(table) ? std::optional(found->second) : std::nullopt;
}

constexpr std::string_view kTimeSince = "takes a time since the beginning such as 10s, 1.5m or 200ms";

Status set_from(Options& options, std::string_view text) {
  options.replay.from_ns = TRY(parse_time("--from", kTimeSince, text));
  return {};
}

Status set_to(Options& options, std::string_view text) {
  options.replay.to_ns = TRY(parse_time("--to", kTimeSince, text));
  return {};
}

std::vector<std::string_view> formats() {
  std::vector<std::string_view> out;
  for (const output::SinkRow& row : output::sinks()) out.push_back(row.name);
  return out;
}

Status set_format(Options& options, std::string_view text) {
  if (output::find_sink(text) == nullptr)
    return fail(fmt::format("Invalid output format \"{}\"", text), 0,
                fmt::format("there are {}", fmt::join(formats(), ", ")));
  options.output.format = text;
  return {};
}

template <const auto& kTable>
std::vector<std::string_view> names_in() {
  std::vector<std::string_view> out;
  for (const auto& [name, value] : kTable) out.push_back(name);
  return out;
}

constexpr std::pair<std::string_view, output::Buffering> kBufferings[] = {
    {"line", output::Buffering::kLine}, {"full", output::Buffering::kFull}, {"none", output::Buffering::kNone}};

Status set_buffering(Options& options, std::string_view text) {
  const auto buffering = value_of(kBufferings, text);
  if (!buffering) return fail(fmt::format("-B takes line, full or none, not `{}`", text));
  options.output.buffering = *buffering;
  return {};
}

// Searched before the standard directory, in the order of the command line.
Status add_debug_directories(Options& options, std::string_view text) {
  std::vector<std::string>& directories = options.symbols.debug_directories;
  for (const std::string_view directory : split(text, ':'))
    if (!directory.empty()) directories.emplace(directories.end() - 1, directory);
  return {};
}

// Losses, hits and cost are shown, so they are counted.
Status set_listen(Options& options, std::string_view text) {
  TRY_STATUS(serve::parse_address(text));
  options.output.listen = text;
  options.config.counting.losses = options.config.counting.cost = true;
  return {};
}

Status set_watch(Options& options, std::string_view interval) {
  constexpr uint64_t kLeastNs = 100'000'000;
  options.output.watch_interval_ns = TRY(parse_time("--watch", "takes an interval such as 1s, 500ms or 1m", interval));
  if (options.output.watch_interval_ns < kLeastNs)
    return fail(fmt::format("--watch {} is too often: 100ms is the shortest interval", interval));
  options.config.counting.losses = true;
  return {};
}

Status set_probe_filter(Options& options, std::string_view text) {
  options.config.probe_filter = text;
  const auto regex = Regex::compile(options.config.probe_filter);
  return regex ? Status() : tl::unexpected(regex.error());
}

Status add_disabled_features(Options& options, std::string_view text) {
  for (const std::string_view name : split(text, ',')) options.kernel.disabled_features.emplace_back(name);
  return {};
}

Status set_verbose(Options& options, std::string_view) {
  options.is_verbose = options.config.counting.losses = options.config.counting.cost = true;
  return {};
}

Status set_cost(Options& options, std::string_view interval) {
  constexpr uint64_t kLeastNs = 100'000'000;
  options.cost.is_shown = options.config.counting.hits = options.config.counting.cost = true;
  if (interval.empty()) return {};
  options.cost.interval_ns = TRY(parse_time("--cost", "takes an interval such as 5s, 500ms or 1m", interval));
  if (options.cost.interval_ns < kLeastNs)
    return fail(fmt::format("--cost={} is too often: 100ms is the shortest interval", interval));
  return {};
}

// "2%", "0.5%", "2%/all".
Status set_budget(Options& options, std::string_view text) {
  std::string_view number = text;
  const bool is_of_all = number.ends_with("/all");
  if (is_of_all) number.remove_suffix(std::string_view("/all").size());
  const bool is_percent = number.ends_with('%');
  if (is_percent) number.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_whole = error == std::errc() && end == number.data() + number.size();
  constexpr double kLeast = 0.01, kMost = 100;
  if (!is_percent || !is_whole || !(percent >= kLeast && percent <= kMost))
    return fail(
        fmt::format("--budget takes a share of one CPU from {}% to {}% such as 2%, or of all CPUs such as 2%/all, "
                    "not `{}`",
                    kLeast, kMost, text));
  options.cost.budget_cpus = percent / 100;
  options.cost.is_budget_of_all_cpus = is_of_all;
  options.config.counting.hits = options.config.counting.cost = options.config.counting.has_gates = true;
  return {};
}

Status set_check_cost(Options& options, std::string_view) {
  options.cost.is_checked = options.config.counting.hits = options.config.counting.has_gates = true;
  return {};
}

Status set_strict(Options& options, std::string_view) {
  options.is_strict = options.config.counting.losses = true;
  return {};
}

Status set_no_warnings(Options& options, std::string_view) {
  options.output.hides_warnings = true;
  options.config.warns = false;
  return {};
}

constexpr std::pair<std::string_view, bool Config::*> kModes[] = {{"test", &Config::runs_tests},
                                                                  {"bench", &Config::runs_benchmarks}};

Status set_mode(Options& options, std::string_view text) {
  const auto flag = value_of(kModes, text);
  if (!flag) return fail(fmt::format("--mode takes test or bench, not `{}`", text));
  options.config.** flag = true;
  return {};
}

std::string modes_doc() { return "test: the same as --test; bench: the same as --bench"; }

// ---- Stages of the compilation

constexpr std::string_view kStages[] = {"script", "tokens", "ast",     "types",  "ir",
                                        "opt",    "bpf",    "program", "events", "verifier"};

bool is_stage(std::string_view name) { return std::ranges::find(kStages, name) != std::end(kStages); }
bool is_stage_list(std::string_view text) { return std::ranges::all_of(split(text, ','), is_stage); }

std::vector<std::string_view> stages() { return {std::begin(kStages), std::end(kStages)}; }

std::string dump_doc() {
  return fmt::format("show stages of the compilation and end (comma-separated): {}", fmt::join(kStages, ", "));
}

Status add_dump(Options& options, std::string_view text) {
  for (const std::string_view stage : split(text, ',')) {
    if (!is_stage(stage)) {
      const std::string near = nearest(stage, kStages);
      return fail(fmt::format("there is no stage `{}` to dump", stage), 0,
                  near.empty() ? fmt::format("the stages are {}", fmt::join(kStages, ", "))
                               : fmt::format("did you mean `{}`?", near));
    }
    options.stages.dumped.emplace_back(stage);
  }
  return {};
}

Status add_short_dump(Options& options, std::string_view text) {
  return add_dump(options, text.empty() ? "ast,ir,bpf" : text);
}

Status accept(Options&, std::string_view) { return {}; }

// "500K", "100M", "2G", in bytes.
Status set_rotate(Options& options, std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  constexpr uint64_t kLeastBytes = 64 << 10, kMostBytes = uint64_t{1} << 40;
  const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const auto number = parse_int(unit == kUnits.npos ? text : text.substr(0, text.size() - 1));
  const unsigned shift = unit == kUnits.npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  if (!number || *number <= 0 || static_cast<uint64_t>(*number) > kMostBytes >> shift ||
      static_cast<uint64_t>(*number) << shift < kLeastBytes)
    return fail(fmt::format("--rotate takes a size of 64K or more such as 500K, 100M or 2G, not `{}`", text));
  options.record.ring.file_bytes = static_cast<uint64_t>(*number) << shift;
  return {};
}

Status set_keep(Options& options, std::string_view text) {
  const uint64_t count = TRY(parse_count("--keep", text));
  if (count < 2) return fail(fmt::format("--keep takes 2 files or more, not `{}`", text));
  options.record.ring.file_count = count;
  return {};
}

Status set_last(Options& options, std::string_view text) {
  constexpr uint64_t kLeastNs = 1'000'000'000;
  const uint64_t age_ns = TRY(parse_time("--last", "takes a time such as 10m, 90s or 1h", text));
  if (age_ns < kLeastNs) return fail(fmt::format("--last takes a second or more, not `{}`", text));
  options.record.ring.age_ns = age_ns;
  return {};
}

constexpr OptionRow kOptionRows[] = {
    {'e', "", "PROGRAM", "run this program; the last -e counts", set_text<&Options::script, &RunOptions::Script::text>},
    {'p', "pid", "PID", "trace only this process, and end when it ends", set_pid},
    {'c', "cmd", "COMMAND", "start this command once all probes are attached, and end when it ends",
     set_text<&Options::tracee, &RunOptions::Tracee::command>},
    {0, "follow", "",
     "with -p or -c: trace this process, those it has started and those it starts, and end when all have ended",
     set_flag<&Options::config, &Config::tracee, &Config::Tracee::follows>},
    {0, "follow-new", "", "the same without the processes that it has started already", set_follow_new},
    {0, "cgroup", "PATH",
     "trace only the tasks of this control group and of those below it, and end when it is removed", set_cgroup},
    {0, "container", "ID",
     "the same for a container of docker, podman or containerd, by the beginning of its id, or for a unit of systemd",
     set_container},
    {0, "user", "NAME", "once the probes are attached, run as this user, without capabilities", set_user},
    {'i', "input", "FILE",
     "take the events from this recording, which `espy record` has made; of a ring, by its name or by several -i",
     add_text<&Options::replay, &RunOptions::Replay::files>},
    {0, "record", "FILE", "also write what the script reads of its events to a recording, for `espy -i FILE`",
     set_text<&Options::record, &RunOptions::Record::file>},
    {0, "rotate", "SIZE",
     "of --record and `espy record`: write FILE.000001, FILE.000002, ...: the next one before a file exceeds this size "
     "(100M)",
     set_rotate},
    {0, "keep", "N", "with --rotate or --last: keep the newest N of these files, delete the others", set_keep},
    {0, "last", "TIME", "keep what is younger than this (10m): write such files, a tenth of it long, delete older ones",
     set_last},
    {0, "from", "TIME", "with -i: leave out what was before this time since the beginning: 10s, 1.5m, 200ms", set_from},
    {0, "to", "TIME", "with -i: leave out what was after it", set_to},
    {'o', "output", "FILE", "write the output to this file", set_text<&Options::output, &RunOptions::Output::file>},
    {'f', "format", "FORMAT", "", set_format, formats, output::sinks_doc},
    {'B', "buffer", "MODE", "output buffering: line (default), full or none", set_buffering, names_in<kBufferings>},
    {0, "listen", "ADDRESS:PORT",
     "show the run while it goes on: a page at /, metrics for Prometheus at /metrics; without ADDRESS for this machine "
     "only",
     set_listen},
    {0, "watch", "INTERVAL",
     "show the maps while the run goes on, at a terminal in place as top(1) does, elsewhere after each interval (1s)",
     set_watch},
    {'v', "verbose", "", "show at the end how often each probe fired, and what it missed; with -l: its arguments",
     set_verbose},
    {.long_name = "cost",
     .argument = "INTERVAL",
     .doc = "show at the end what the probes cost; with --cost=INTERVAL (5s) also while they run; with --info: what "
            "reaching a probe costs",
     .set = set_cost,
     .is_argument_optional = true},
    {0, "budget", "SHARE",
     "let the probes take at most this share of a CPU (2%) or of all (2%/all): the dearest are off for a part of the "
     "time",
     set_budget},
    {0, "check-cost", "",
     "count events for 20 ms first, and end if the probes will take more than a tenth of a CPU, or ask at a terminal; "
     "the command of -c has not begun then",
     set_check_cost},
    {0, "yes", "", "with --check-cost: go on in any case",
     set_flag<&Options::config, &Config::counting, &Config::Counting::accepts_cost>},
    {0, "strict", "", "fail with a reason if any number shown is not exact", set_strict},
    {'q', "quiet", "", "do not say how many probes were attached",
     set_flag<&Options::output, &RunOptions::Output::is_quiet>},
    {'k', "warnings", "", "say where in the script a kernel helper failed",
     set_flag<&Options::config, &Config::warn_helper_errors>},
    {0, "no-warnings", "", "show no warnings about the program, nor those of warnf()", set_no_warnings},
    {0, "unsafe", "", "allow system(), signal() and others that change the machine",
     set_flag<&Options::config, &Config::allow_unsafe>},
    {'I', "", "DIRECTORY", "search this directory for included headers",
     add_text<&Options::config, &Config::headers, &Config::Headers::directories>},
    {0, "include", "FILE", "include this header before the first line of the program",
     add_text<&Options::config, &Config::headers, &Config::Headers::files>},
    {0, "debuginfo", "DIRECTORIES", "search these directories for separate debug files (colon-separated)",
     add_debug_directories},
    {0, "traceable-functions", "FILE", "read the names of traceable kernel functions from this file, one a line",
     set_text<&Options::kernel, &RunOptions::Kernel::traceable_functions>},
    {0, "dwarf-pid", "PID",
     "read the unwind tables of this process before tracing begins; those of others are read when they appear",
     add_unwound_pid},
    {0, "usdt-file-activation", "", "accepted; semaphores of USDT probes always count for every process of a file",
     accept},
    {0, "test", "", "run the program's `test` probes, and show which fail",
     set_flag<&Options::config, &Config::runs_tests>},
    {0, "bench", "", "run the program's `bench` probes, and show how long they take",
     set_flag<&Options::config, &Config::runs_benchmarks>},
    {0, "mode", "MODE", "", set_mode, names_in<kModes>, modes_doc},
    {0, "probe-filter", "REGEX", "attach only the probes whose names match this regular expression", set_probe_filter},
    {0, "no-feature", "NAMES", "treat these kernel features as missing (comma-separated; --info lists them)",
     add_disabled_features},
    {0, "dry-run", "", "compile, load and attach, and end; no action runs", set_flag<&Options::is_dry_run>},
    {0, "dump", "STAGES", "", add_dump, stages, dump_doc},
    {'d', "", "", "short for --dump; without stages, ast,ir,bpf", add_short_dump, nullptr, nullptr, is_stage_list},
    {0, "time", "", "show how many milliseconds each stage took, and its budget",
     set_flag<&Options::stages, &RunOptions::Stages::are_timed>},
    {'b', "btf", "", "accepted for old scripts; BTF is always used", accept},
};

}  // namespace

Result<uint64_t> parse_time(std::string_view option, std::string_view what, std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1e9},   {"s", 1e9},  {"ms", 1e6},
                                                            {"us", 1e3}, {"m", 60e9}, {"h", 3600e9}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = value_of(kUnits, {end, static_cast<size_t>(text.data() + text.size() - end)});
  constexpr double kMaxNs = 1e18;
  if (error != std::errc() || !unit || !(number >= 0) || number * *unit > kMaxNs)
    return fail(fmt::format("{} {}, not `{}`", option, what, text));
  return static_cast<uint64_t>(number * *unit);
}

std::span<const OptionRow> option_rows() { return kOptionRows; }

// ---- What lists of options show

std::vector<OptionRow> listed_options() {
  std::vector<OptionRow> out(std::begin(kOptionRows), std::end(kOptionRows));
  for (const Command* command : commands()) {
    if (!command->has_option()) continue;
    const auto is_before = [&](const OptionRow& row) {
      const std::string_view name = command->option_follows;
      return !name.empty() && (row.long_name == name || name == std::string_view(&row.short_name, 1));
    };
    const auto before = std::ranges::find_if(out, is_before);
    out.insert(before == out.end() ? before : before + 1, command->option);
  }
  std::erase_if(out, [](const OptionRow& row) { return !row.is_listed(); });
  return out;
}

std::string option_names(const OptionRow& row) {
  std::string out;
  if (row.short_name != 0) out += fmt::format("-{}", row.short_name);
  if (!row.long_name.empty()) out += fmt::format("{}--{}", out.empty() ? "" : ", ", row.long_name);
  if (row.is_argument_optional)
    out += fmt::format("[={}]", row.argument);
  else if (!row.argument.empty())
    out += fmt::format(" {}", row.argument);
  return out;
}

std::string option_doc(const OptionRow& row) { return row.make_doc != nullptr ? row.make_doc() : std::string(row.doc); }

// ---- From argv to Options.

namespace {

// A row that can be typed, and the command that it chooses; null: none.
struct Typed {
  const OptionRow* row = nullptr;
  const Command* chosen = nullptr;
};

// Options come first, then the script or its file, then what belongs to the script.
class Parser {
 public:
  explicit Parser(std::span<char* const> arguments) : arguments_(arguments) { choose_command(); }
  Parser(std::shared_ptr<const tool::Tool> tool, std::span<char* const> arguments) : arguments_(arguments) {
    options_.command = commands().front();
    for (const OptionRow& row : tool_option_rows()) rows_.push_back({&row});
    for (const Command* command : tool_commands()) rows_.push_back({&command->option, command});
    options_.script.tool = std::move(tool);
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
        take_word(word);
      }
    }
    return std::move(options_);
  }

 private:
  // The first word may be a command; a script of that name is `./trace`.
  void choose_command() {
    options_.command = commands().front();
    for (const OptionRow& row : option_rows()) rows_.push_back({&row});
    for (const Command* command : commands())
      if (command->has_option()) rows_.push_back({&command->option, command});
    if (arguments_.empty()) return;
    for (const Command* command : commands()) {
      if (command->word.empty() || command->word != arguments_[0]) continue;
      options_.command = by_word_ = command;
      if (command->make_options != nullptr) options_.own = command->make_options();
      std::vector<Typed> own;
      for (const OptionRow& row : command->options) own.push_back({&row});
      rows_.insert(rows_.begin(), own.begin(), own.end());
      next_ = 1;
    }
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

  tl::unexpected<Error> unknown_option(std::string_view typed) const {
    std::vector<std::string_view> names;
    for (const Typed& known : rows_)
      if (!known.row->long_name.empty()) names.push_back(known.row->long_name);
    if (options_.script.tool)
      for (const check::ScriptOption& own : options_.script.tool->options) names.push_back(own.name);
    const std::string near = typed.starts_with("--") ? nearest(typed.substr(2), names) : "";
    return fail(fmt::format("there is no option `{}`", typed), 0,
                near.empty() ? (options_.script.tool ? "--help lists them" : "espy --help lists them")
                             : fmt::format("did you mean `--{}`?", near));
  }

  bool has_script() const { return options_.script.tool || options_.script.text || options_.script.file; }
  // "-1" behind a script is an argument of the script.
  bool is_script_argument() const {
    return has_script() && arguments_[next_ - 1][1] >= '0' && arguments_[next_ - 1][1] <= '9';
  }

  void take_word(std::string_view word, bool is_behind_dashes = false) {
    if (is_behind_dashes && options_.command->takes_script_arguments) {
      options_.config.arguments.positional.emplace_back(word);
      return;
    }
    const bool is_pattern = options_.command->operands == Operands::kPattern;
    if (by_word_ != nullptr) {
      options_.names.emplace_back(word);
    } else if (is_pattern && options_.argument.empty() && !has_script()) {
      options_.argument = word;
    } else if (!has_script()) {
      options_.script.file = word;
    } else {
      options_.config.arguments.positional.emplace_back(word);
    }
  }

  Result<std::string_view> argument_of(std::string_view option) {
    if (next_ == arguments_.size()) return fail(fmt::format("{} needs an argument", option));
    return std::string_view(arguments_[next_++]);
  }

  Status apply(const Typed& typed, std::string_view argument) {
    if (typed.chosen != nullptr) options_.command = typed.chosen;
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
    if (word.find('=') != std::string_view::npos || option.is_switch()) return take_named(word);
    options_.config.arguments.named.emplace_back(option.name, TRY(argument_of(word)));
    return {};
  }

  // --name, or --name=value.
  Status take_named(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string name(word.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    options_.config.arguments.named.emplace_back(name,
                                                 equals == std::string_view::npos ? "true" : word.substr(equals + 1));
    return {};
  }

  // Behind `--`: options of the script, and plain words as positional arguments.
  Status take_named() {
    while (next_ < arguments_.size()) {
      const std::string_view word = arguments_[next_++];
      if (word.starts_with("--")) {
        TRY_STATUS(take_named(word));
      } else {
        take_word(word, true);
      }
    }
    return {};
  }

  std::span<char* const> arguments_;
  size_t next_ = 0;
  const Command* by_word_ = nullptr;
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
  if (options.cost.needs_hook_costs() && !options.replay.files.empty())
    return fail("-i runs nothing in the kernel: --cost, --budget and --check-cost have no meaning there");
  if (options.record.file && options.script.file)
    TRY_STATUS(check_script_is_kept("--record", *options.record.file, *options.script.file));
  return check_output(options);
}

Status check_combination(const Options& options) {
  if (options.config.tracee.pid && options.tracee.command) return fail("-p and -c cannot be used together");
  if (options.config.tracee.follows && !options.config.tracee.pid && !options.tracee.command)
    return fail("--follow needs a process to follow", 0, "-p PID, or -c COMMAND");
  if (options.output.watch_interval_ns > 0 && options.output.format != "text")
    return fail(fmt::format("--watch shows text: not with -f {}", options.output.format), 0,
                "--listen serves a page and metrics while a run goes on");
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
    return fail("there is nothing to look at", 0,
                options.command->usage.empty() ? "" : fmt::format("espy {}", options.command->usage.front()));
  if (operands == Operands::kScript && !options.script.tool && !options.script.text && !options.script.file)
    return fail("there is no program to run", 0, "espy -e 'begin { printf(\"hello\\n\"); }', or espy FILE");
  return {};
}

}  // namespace

Result<uint64_t> parse_count(std::string_view option, std::string_view text) {
  const auto count = parse_int(text);
  if (!count || *count <= 0) return fail(fmt::format("{} takes a number from 1 on, not `{}`", option, text));
  return static_cast<uint64_t>(*count);
}

Result<Options> parse_options(std::span<char* const> arguments) {
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
