// espy strace: system calls as strace(1) shows them, without stopping the process.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/strings.h"
#include "cli/command.h"
#include "strace/strace_run.h"

namespace espy::cli {

namespace {

struct OwnOfStrace : CommandOptions {
  strace::StraceOptions wishes;
};

strace::StraceOptions& wishes_of(Options& options) { return static_cast<OwnOfStrace&>(*options.own).wishes; }

Status add_expression(Options& options, std::string_view text) {
  wishes_of(options).expressions.emplace_back(text);
  return {};
}

Status set_own_file(Options& options, std::string_view text) {
  wishes_of(options).file = text;
  wishes_of(options).lines.has_file = true;
  return {};
}

Status set_text_size(Options& options, std::string_view text) {
  constexpr int64_t kMost = 4000;
  const auto size = parse_int(text);
  if (!size || *size < 0 || *size > kMost)
    return fail(fmt::format("-s takes 0 to {} bytes, not `{}`", kMost, printable_line(text)));
  wishes_of(options).style.text_bytes = static_cast<uint32_t>(*size);
  return {};
}

Status set_summary(Options& options, std::string_view) {
  wishes_of(options).lines.has_summary = true;
  wishes_of(options).lines.has_lines = false;
  return {};
}

Status set_summary_too(Options& options, std::string_view) {
  wishes_of(options).lines.has_summary = true;
  return {};
}

Status set_sort(Options& options, std::string_view text) {
  using strace::Sort;
  constexpr std::pair<std::string_view, Sort> kNames[] = {
      {"time", Sort::kTime},    {"time-total", Sort::kTime},  {"total-time", Sort::kTime},
      {"calls", Sort::kCalls},  {"count", Sort::kCalls},      {"errors", Sort::kErrors},
      {"error", Sort::kErrors}, {"name", Sort::kName},        {"syscall", Sort::kName},
      {"none", Sort::kName},    {"avg-time", Sort::kAverage}, {"time-avg", Sort::kAverage}};
  const auto* found = std::ranges::find(kNames, text, &std::pair<std::string_view, Sort>::first);
  if (found == std::end(kNames))
    return fail(fmt::format("-S does not take `{}`", printable_line(text)), 0, "time, calls, errors, name, avg-time");
  wishes_of(options).lines.sort = found->second;
  return {};
}

Status set_clock(Options& options, std::string_view) {
  strace::Clock& clock = wishes_of(options).lines.clock;
  if (clock != strace::Clock::kEpoch) clock = static_cast<strace::Clock>(static_cast<int>(clock) + 1);
  return {};
}

template <bool strace::LineOptions::*kFlag>
Status set_line_flag(Options& options, std::string_view) {
  wishes_of(options).lines.*kFlag = true;
  return {};
}

template <bool strace::StraceOptions::*kFlag>
Status set_choice(Options& options, std::string_view) {
  wishes_of(options).*kFlag = true;
  return {};
}

Status set_verbose(Options& options, std::string_view) {
  wishes_of(options).style.is_verbose = true;
  return {};
}

Status set_hex(Options& options, std::string_view) {
  ++wishes_of(options).style.hex_texts;
  return {};
}

Status set_quieter(Options& options, std::string_view) {
  ++wishes_of(options).lines.quiet;
  return {};
}

Status follow(Options& options, std::string_view) {
  const auto is_it = [](const auto& each) { return each.first->short_name == 'f'; };
  if (std::ranges::count_if(options.typed, is_it) < 2) return {};
  return fail("-ff is not there: espy strace writes one file", 0, "-o FILE begins each line with the thread");
}

constexpr OptionRow kStraceRows[] = {
    {'e', "", "EXPR", "show these calls (trace=SET or SET) or results (status=SET)", add_expression},
    {'z', "successful-only", "", "show only calls that succeed", set_choice<&strace::StraceOptions::only_successful>},
    {'Z', "failed-only", "", "show only calls that fail", set_choice<&strace::StraceOptions::only_failed>},
    {'o', "output", "FILE", "write to this file (standard error)", set_own_file},
    {'s', "string-limit", "SIZE", "show this much of a text or buffer (32)", set_text_size},
    {'v', "no-abbrev", "", "show all members of structs", set_verbose},
    {'x', "", "", "show texts that are not ASCII in hexadecimal (-xx all texts)", set_hex},
    {'c', "summary-only", "", "count calls, errors and time, and show no calls", set_summary},
    {'C', "summary", "", "like -c, and show the calls", set_summary_too},
    {'S', "summary-sort-by", "KEY", "sort -c by time, calls, errors, name or avg-time (time)", set_sort},
    {'t', "", "", "show the time of day (-tt with microseconds, -ttt since 1970)", set_clock},
    {'r', "relative-timestamps", "", "show the time since the line before",
     set_line_flag<&strace::LineOptions::has_relative_time>},
    {'T', "syscall-times", "", "show how long each call takes", set_line_flag<&strace::LineOptions::has_duration>},
    {'n', "syscall-number", "", "show the number of each call", set_line_flag<&strace::LineOptions::has_number>},
    {'q', "quiet", "", "do not show how threads end", set_quieter},
    {'f', "", "", "follow child processes, which espy always does", follow},
};

// `'` in a word ends the quoted part, and begins another one.
std::string quoted_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    out += out.empty() ? "'" : " '";
    for (const char c : word) {
      if (c == '\'')
        out += "'\\''";
      else
        out += c;
    }
    out += '\'';
  }
  return out;
}

int trace_calls(const Options& options, const Host& host) {
  Options of_run = options;
  const bool has_processes = !options.config.tracee.processes.empty();
  const bool has_group = !options.tracee.cgroup.empty() || !options.tracee.container.empty();
  if (!options.names.empty() && has_processes) return complain({"-p and a COMMAND cannot be used together"});
  if (!options.names.empty() && has_group)
    return complain({"a COMMAND cannot be used with --cgroup or --container", 0,
                     "the command would run in the group of espy: start it in the other one yourself"});
  if (options.names.empty() && !has_processes && !has_group && options.config.tracee.thread_names.empty())
    return complain({"espy strace needs a command, or processes to trace", 0,
                     "espy strace COMMAND, -p PID, --comm NAME or --cgroup PATH"});
  if (!options.names.empty()) of_run.tracee.command = quoted_words(options.names);
  if (has_processes) of_run.config.tracee.follows = true;
  return strace::run_strace(static_cast<const OwnOfStrace&>(*options.own).wishes, of_run, host);
}

constexpr std::string_view kStraceUsage[] = {"strace [OPTION...] COMMAND [ARGUMENT...]", "strace [OPTION...] -p PID"};
constexpr std::string_view kStraceCommon[] = {"pid", "comm", "cgroup", "container", "user", "duration"};
constexpr std::string_view kStraceNotes =
    R"(The calls are shown in the form of strace(1), and its options mean the same.
SET is names of calls, classes (%file %desc %network %process %memory %signal
%ipc) or /REGEX, with commas; `!` before it: all others.
)";
constexpr Example kStraceExamples[] = {
    {"espy strace -e %network -T -p 4711", "show how long the network calls of a process take"},
    {"espy strace -Z make", "show the calls that fail"}};

}  // namespace

extern const Command kStrace = {
    .word = "strace",
    .summary = "show system calls as strace does, without stopping the process",
    .operands = Operands::kCommandLine,
    .options = kStraceRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<OwnOfStrace>()); },
    .usage = kStraceUsage,
    .notes = kStraceNotes,
    .common = kStraceCommon,
    .examples = kStraceExamples,
    .run = trace_calls,
};

}  // namespace espy::cli
