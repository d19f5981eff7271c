// espy count, latency, stacks, args: numbers about the calls of functions, without a script.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/command.h"
#include "trace/profile_script.h"
#include "trace/verbs.h"

namespace espy::cli {

namespace {

// ---- Options

template <class Wishes>
struct Own : CommandOptions {
  Wishes wishes;
};

trace::VerbOptions& own(Options& options) { return static_cast<Own<trace::VerbOptions>&>(*options.own).wishes; }
trace::ProfileOptions& profile_of(Options& options) {
  return static_cast<Own<trace::ProfileOptions>&>(*options.own).wishes;
}

template <class Wishes>
std::shared_ptr<CommandOptions> make_own() {
  return std::make_shared<Own<Wishes>>();
}

Status set_by(Options& options, std::string_view text) {
  if (trim(text).empty()) return fail("--by takes an expression of arguments, such as count");
  own(options).by = trim(text);
  return {};
}

Status set_interval(Options& options, std::string_view text) {
  constexpr uint64_t kLeastNs = 1'000'000;
  own(options).interval_ns = TRY(parse_time("--interval", "takes a time such as 1s, 0.2 or 500ms", text));
  if (own(options).interval_ns < kLeastNs)
    return fail(fmt::format("--interval {} is too often: 1ms is the shortest interval", text));
  return {};
}

template <bool trace::VerbOptions::*kFlag>
Status set_wish(Options& options, std::string_view) {
  own(options).*kFlag = true;
  return {};
}

Status set_frequency(Options& options, std::string_view text) {
  constexpr uint64_t kMost = 10'000;
  const uint64_t hz = TRY(parse_count("-F", text));
  if (hz > kMost) return fail(fmt::format("-F takes 1 to {} samples a second, not `{}`", kMost, text));
  profile_of(options).hz = hz;
  return {};
}

Status set_off_cpu(Options& options, std::string_view) {
  profile_of(options).is_off_cpu = true;
  return {};
}

// The general option, with a short name that scripts have for --dump.
constexpr OptionRow kDuration = {'d', "duration", "TIME", "end after this time, such as 10s or 500ms", set_duration};
constexpr OptionRow kInterval = {0, "interval", "TIME", "show the numbers of each interval, such as 1s or 0.2",
                                 set_interval};
constexpr OptionRow kBy = {0, "by", "EXPR", "show one number for each value of EXPR, such as an argument", set_by};

constexpr OptionRow kCountRows[] = {kDuration, kInterval, kBy};
constexpr OptionRow kStackRows[] = {
    kDuration,
    kInterval,
    {0, "kstack", "", "count kernel stacks", set_wish<&trace::VerbOptions::kernel_stack>},
    {0, "ustack", "", "count user stacks", set_wish<&trace::VerbOptions::user_stack>}};
constexpr OptionRow kArgRows[] = {
    kDuration,
    kInterval,
    {0, "frequency", "", "count each value instead of a histogram", set_wish<&trace::VerbOptions::is_frequency>}};
constexpr OptionRow kProfileRows[] = {
    kDuration,
    {'F', "frequency", "HZ", "take HZ samples a second of each CPU (99)", set_frequency},
    {0, "off-cpu", "", "show how long threads wait, and where, in us", set_off_cpu}};

// ---- What the commands do

bool was_typed(const Options& options, std::string_view long_name) {
  return std::ranges::any_of(options.typed, [&](const auto& each) { return each.first->long_name == long_name; });
}

template <trace::Verb kVerb>
int run_verb(const Options& options, const Host& host) {
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  run::follow_command(options, **environment);
  const std::vector<std::string> targets = trace::split_trace_targets(options.names);
  Options of_verb = options;
  if (kVerb == trace::Verb::kStacks && !was_typed(options, "format")) of_verb.output.format = "tree";
  const trace::VerbOptions& wishes = static_cast<const Own<trace::VerbOptions>&>(*options.own).wishes;
  return trace::run_target_script(trace::write_verb_script(kVerb, targets, wishes, **environment), of_verb,
                                  **environment, host.prepare);
}

int run_profile(const Options& options, const Host& host) {
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  run::follow_command(options, **environment);
  Options of_profile = options;
  const bool is_picture = options.output.file && options.output.file->ends_with(".svg");
  if (!was_typed(options, "format")) of_profile.output.format = is_picture ? "flame" : "tree";
  trace::ProfileOptions wishes = static_cast<const Own<trace::ProfileOptions>&>(*options.own).wishes;
  wishes.is_one_process = options.config.tracee.processes.size() == 1;
  return trace::run_target_script(trace::write_profile_script(wishes, **environment), of_profile, **environment,
                                  host.prepare);
}

constexpr std::string_view kCountUsage[] = {"count [OPTION...] TARGET..."};
constexpr std::string_view kLatencyUsage[] = {"latency [OPTION...] TARGET..."};
constexpr std::string_view kStackUsage[] = {"stacks [OPTION...] TARGET..."};
constexpr std::string_view kArgUsage[] = {"args [OPTION...] 'TARGET(ARGUMENT)'..."};
constexpr std::string_view kProfileUsage[] = {"profile [OPTION...] [-p PID | -c COMMAND]"};
constexpr std::string_view kNotes = "`espy help target` explains TARGET.\n";
constexpr std::string_view kCommon[] = {"pid",       "cmd",    "follow", "comm",  "cgroup",
                                        "container", "output", "format", "strict"};

constexpr Example kCountExamples[] = {
    {"espy count -d 10 'vfs_*'", "the calls of functions in ten seconds"},
    {"espy count --interval 1 'openat(return < 0)'", "the system calls that fail in each second"}};
constexpr Example kLatencyExamples[] = {
    {"espy latency openat", "how long a system call takes, as a histogram"},
    {"espy latency -c ./shop './shop:*'", "how long the functions of a program take"}};
constexpr Example kStackExamples[] = {{"espy stacks -p 4711 libc:malloc", "who calls a function, as a tree"},
                                      {"espy stacks -f flame -o calls.svg vfs_read", "the same as a flame graph"}};
constexpr Example kArgExamples[] = {{"espy args 'vfs_read(count)'", "the distribution of an argument"},
                                    {"espy args --frequency 'openat(return)'", "how often each result is returned"}};
constexpr Example kProfileExamples[] = {
    {"espy profile -d 10", "where the CPUs spend their time, as a tree"},
    {"espy profile -d 10 -p 4711 -o profile.svg", "the same of a process, as a flame graph"}};

}  // namespace

extern const Command kCount = {
    .word = "count",
    .alias = "funccount",
    .summary = "count calls and events",
    .operands = Operands::kNames,
    .options = kCountRows,
    .make_options = make_own<trace::VerbOptions>,
    .usage = kCountUsage,
    .notes = kNotes,
    .common = kCommon,
    .examples = kCountExamples,
    .run = run_verb<trace::Verb::kCount>,
};

extern const Command kLatency = {
    .word = "latency",
    .alias = "funclatency",
    .summary = "show how long calls take, as a histogram",
    .operands = Operands::kNames,
    .options = kCountRows,
    .make_options = make_own<trace::VerbOptions>,
    .usage = kLatencyUsage,
    .notes = kNotes,
    .common = kCommon,
    .examples = kLatencyExamples,
    .run = run_verb<trace::Verb::kLatency>,
};

extern const Command kStacks = {
    .word = "stacks",
    .alias = "stackcount",
    .summary = "show who calls a function, as a tree",
    .operands = Operands::kNames,
    .options = kStackRows,
    .make_options = make_own<trace::VerbOptions>,
    .usage = kStackUsage,
    .notes = kNotes,
    .common = kCommon,
    .examples = kStackExamples,
    .run = run_verb<trace::Verb::kStacks>,
};

extern const Command kArgs = {
    .word = "args",
    .alias = "argdist",
    .summary = "show the distribution of arguments and results",
    .operands = Operands::kNames,
    .options = kArgRows,
    .make_options = make_own<trace::VerbOptions>,
    .usage = kArgUsage,
    .notes = kNotes,
    .common = kCommon,
    .examples = kArgExamples,
    .run = run_verb<trace::Verb::kArgs>,
};

extern const Command kProfile = {
    .word = "profile",
    .summary = "show where threads run, or wait, as a tree",
    .operands = Operands::kNone,
    .options = kProfileRows,
    .make_options = make_own<trace::ProfileOptions>,
    .usage = kProfileUsage,
    .common = kCommon,
    .examples = kProfileExamples,
    .run = run_profile,
};

}  // namespace espy::cli
