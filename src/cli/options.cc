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

constexpr size_t kMostProcesses = 128;  // a comparison in each program for each
constexpr size_t kMostThreadNames = 16;
constexpr size_t kMostNameBytes = 15;  // TASK_COMM_LEN - 1: the kernel keeps no more of a name

// -p 12,13, and -p again, as the words of `pgrep -d,` and `pidof` are.
Status add_pids(Options& options, std::string_view text) {
  std::vector<spec::TracedProcess>& processes = options.config.tracee.processes;
  for (const std::string_view each : split(text, ',')) {
    const uint32_t pid = TRY(parse_pid(each, each.empty() ? std::string("-p needs a process id, which is empty here")
                                                          : fmt::format("`{}` is not a process id", each)));
    if (std::ranges::find(processes, pid, &spec::TracedProcess::pid) == processes.end()) processes.push_back({pid});
  }
  if (processes.size() > kMostProcesses)
    return fail(fmt::format("-p takes at most {} processes, not {}", kMostProcesses, processes.size()), 0,
                "--cgroup takes a group of any size, --comm a name");
  return {};
}

// A name has any bytes, commas too: each --comm is one name.
Status add_thread_name(Options& options, std::string_view text) {
  if (text.empty()) return fail("--comm needs a name, which is empty here");
  std::vector<std::string>& names = options.config.tracee.thread_names;
  const std::string name(text.substr(0, kMostNameBytes));
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  if (names.size() > kMostThreadNames) return fail(fmt::format("--comm can be given {} times", kMostThreadNames));
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
    return fail(fmt::format("there is no output format `{}`", text), 0,
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

Status set_reopen(Options& options, std::string_view) {
  options.output.appends = options.output.reopens = true;
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

// ---- The rows, by group. The texts are for lines of 80 columns.

constexpr OptionRow kProcessRows[] = {
    {'p', "pid", "PID", "trace these processes (12,13), and end with the last", add_pids},
    {'c', "cmd", "COMMAND", "start this command once all probes are attached, and end when it ends",
     set_text<&Options::tracee, &RunOptions::Tracee::command>},
    {0, "follow", "", "with -p or -c: also trace existing and new children, and end with the last",
     set_flag<&Options::config, &Config::tracee, &Config::Tracee::follows>},
    {0, "follow-new", "", "like --follow, and skip existing children", set_follow_new},
    {0, "comm", "NAME", "trace only threads of this name (may be repeated)", add_thread_name},
    {0, "cgroup", "PATH", "trace only the tasks in this control group and below, and end when it is removed",
     set_cgroup},
    {0, "container", "ID", "like --cgroup, for a container (ID or a prefix of it) or a systemd unit", set_container},
    {0, "duration", "TIME", "end after this time, such as 10s or 500ms, like Ctrl-C; in tools also -d", set_duration},
    {0, "user", "NAME", "run as this user, without capabilities, once the probes are attached", set_user},
};

constexpr OptionRow kOutputRows[] = {
    {'o', "output", "FILE", "write the output to this file", set_text<&Options::output, &RunOptions::Output::file>},
    {0, "append", "", "with -o: append to the file instead of emptying it",
     set_flag<&Options::output, &RunOptions::Output::appends>},
    {0, "reopen", "", "like --append; open the file again at SIGHUP (logrotate)", set_reopen},
    {'f', "format", "FORMAT", "", set_format, formats, output::sinks_doc},
    {'B', "buffer", "MODE", "output buffering: line (default), full or none", set_buffering, names_in<kBufferings>},
    {0, "watch", "INTERVAL", "show the maps while they change, again after each interval (1s)", set_watch},
    {0, "listen", "ADDRESS:PORT",
     "serve a page at / and Prometheus metrics at /metrics; only to this machine by default", set_listen},
    {'q', "quiet", "", "do not print the number of attached probes",
     set_flag<&Options::output, &RunOptions::Output::is_quiet>},
    {'v', "verbose", "", "show events and losses of each probe at the end; with `espy list`: arguments", set_verbose},
    {0, "no-warnings", "", "hide warnings about the program and of warnf()", set_no_warnings},
};

constexpr OptionRow kCostRows[] = {
    {.long_name = "cost",
     .argument = "INTERVAL",
     .doc = "show the cost of the probes at the end, and each INTERVAL; with `espy features`: the cost of a probe",
     .set = set_cost,
     .is_argument_optional = true},
    {0, "budget", "SHARE", "limit the probes to this share of a CPU (2%) or of all (2%/all): turn off some of the time",
     set_budget},
    {0, "check-cost", "", "count events for 20 ms first, and stop or ask if the probes would use over 10% of a CPU",
     set_check_cost},
    {0, "yes", "", "with --check-cost: continue without asking",
     set_flag<&Options::config, &Config::counting, &Config::Counting::accepts_cost>},
    {0, "strict", "", "fail with a reason if any number shown is not exact", set_strict},
    {'k', "warnings", "", "show where in the script a kernel helper failed",
     set_flag<&Options::config, &Config::warn_helper_errors>},
};

constexpr OptionRow kRecordingRows[] = {
    {'i', "input", "FILE", "read events from this recording; for a ring, give its name, or repeat -i",
     add_text<&Options::replay, &RunOptions::Replay::files>},
    {0, "record", "FILE", "also record the data that the script reads, for `espy -i FILE`",
     set_text<&Options::record, &RunOptions::Record::file>},
    {0, "rotate", "SIZE", "split the recording into FILE.000001, FILE.000002, ... of at most SIZE, such as 100M",
     set_rotate},
    {0, "keep", "N", "with --rotate or --last: keep the newest N files, and delete the others", set_keep},
    {0, "last", "TIME", "keep the last TIME, such as 10m, in files that each cover a tenth of it", set_last},
    {0, "from", "TIME", "with -i: skip events before this time since the start, such as 10s, 1.5m, 200ms", set_from},
    {0, "to", "TIME", "with -i: skip events after this time", set_to},
};

constexpr OptionRow kScriptRows[] = {
    {'e', "", "PROGRAM", "run this program (the last -e wins)", set_text<&Options::script, &RunOptions::Script::text>},
    {0, "unsafe", "", "allow system(), signal() and others that change the machine",
     set_flag<&Options::config, &Config::allow_unsafe>},
    {'I', "", "DIRECTORY", "search this directory for included headers",
     add_text<&Options::config, &Config::headers, &Config::Headers::directories>},
    {0, "include", "FILE", "include this header before the first line of the program",
     add_text<&Options::config, &Config::headers, &Config::Headers::files>},
    {0, "probe-filter", "REGEX", "attach only the probes whose names match this regular expression", set_probe_filter},
    {0, "test", "", "run the `test` probes, and show which fail", set_flag<&Options::config, &Config::runs_tests>},
    {0, "bench", "", "run the `bench` probes, and show how long they take",
     set_flag<&Options::config, &Config::runs_benchmarks>},
    {0, "mode", "MODE", "", set_mode, names_in<kModes>, modes_doc},
};

constexpr OptionRow kSymbolRows[] = {
    {0, "debuginfo", "DIRECTORIES", "search these directories for separate debug files (colon-separated)",
     add_debug_directories},
    {0, "dwarf-pid", "PID", "read the unwind tables of this process before tracing starts", add_unwound_pid},
    {0, "traceable-functions", "FILE", "read the names of traceable kernel functions from this file, one a line",
     set_text<&Options::kernel, &RunOptions::Kernel::traceable_functions>},
    {0, "no-feature", "NAMES", "treat these kernel features as missing (comma-separated; see `espy features`)",
     add_disabled_features},
    {0, "usdt-file-activation", "", "no effect: USDT semaphores always count for every process of a file", accept},
    {'b', "btf", "", "no effect: BTF is always used", accept},
};

constexpr OptionRow kDeveloperRows[] = {
    {0, "dry-run", "", "compile, load and attach, and end; no action runs", set_flag<&Options::is_dry_run>},
    {0, "dump", "STAGES", "", add_dump, stages, dump_doc},
    {'d', "", "", "short for --dump; without stages, ast,ir,bpf", add_short_dump, nullptr, nullptr, is_stage_list},
    {0, "time", "", "show how many milliseconds each stage took, and its budget",
     set_flag<&Options::stages, &RunOptions::Stages::are_timed>},
};

}  // namespace

Status set_duration(Options& options, std::string_view text) {
  constexpr uint64_t kLeastNs = 1'000'000;
  options.duration_ns = TRY(parse_time("--duration", "takes a time such as 10s, 500ms or 2m", text));
  if (options.duration_ns < kLeastNs) return fail(fmt::format("--duration {} is too short: 1ms is the shortest", text));
  return {};
}

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

std::span<const OptionGroup> option_groups() {
  static constexpr OptionGroup kGroups[] = {
      {"processes", "Which processes, and how long", kProcessRows},
      {"output", "Output", kOutputRows},
      {"cost", "Cost and exactness", kCostRows},
      {"recordings", "Recordings", kRecordingRows},
      {"scripts", "Scripts", kScriptRows},
      {"symbols", "Symbols and kernel features", kSymbolRows},
      {"development", "Compilation", kDeveloperRows},
  };
  return kGroups;
}

std::span<const OptionRow> option_rows() {
  static const std::vector<OptionRow> kAll = [] {
    std::vector<OptionRow> out;
    for (const OptionGroup& group : option_groups()) out.insert(out.end(), group.rows.begin(), group.rows.end());
    return out;
  }();
  return kAll;
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

Result<uint64_t> parse_count(std::string_view option, std::string_view text) {
  const auto count = parse_int(text);
  if (!count || *count <= 0) return fail(fmt::format("{} takes a number from 1 on, not `{}`", option, text));
  return static_cast<uint64_t>(*count);
}

}  // namespace espy::cli
