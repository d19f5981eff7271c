// espy trace: calls and events without a program. Writes a script for its targets and runs it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cli/command.h"
#include "trace/trace_script.h"
#include "trace/trace_target.h"

namespace espy::cli {

namespace {

struct Own : CommandOptions {
  trace::TraceOptions trace;
};

trace::TraceOptions& own(Options& options) { return static_cast<Own&>(*options.own).trace; }

Status set_depth(Options& options, std::string_view text) {
  own(options).depth = TRY(parse_count("--depth", text));
  return {};
}

Status set_events(Options& options, std::string_view text) {
  own(options).events = TRY(parse_count("-n", text));
  return {};
}

Status set_slower_than(Options& options, std::string_view text) {
  constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto* unit = std::ranges::find(kUnits, text.substr(digits), &std::pair<std::string_view, uint64_t>::first);
  const auto count = parse_int(text.substr(0, digits));
  if (unit == std::end(kUnits) || !count || *count <= 0 || *count > 1'000'000'000)
    return fail(fmt::format("--slower-than takes a time such as 10us or 2ms, not `{}`", text));
  own(options).slower_than_ns = static_cast<uint64_t>(*count) * unit->second;
  return {};
}

Status set_graph(Options& options, std::string_view) {
  own(options).is_graph = true;
  return {};
}

Status set_addresses(Options& options, std::string_view) {
  own(options).shows_addresses = true;
  return {};
}

Status set_order(Options& options, std::string_view) {
  own(options).is_ordered = true;
  return {};
}

Status add_when(Options& options, std::string_view text) {
  if (trim(text).empty()) return fail("--when takes a condition, such as 'return < 0'");
  own(options).when.emplace_back(trim(text));
  return {};
}

Status set_before(Options& options, std::string_view text) {
  own(options).before = TRY(parse_count("--before", text));
  return {};
}

constexpr OptionRow kRows[] = {
    {'s', "stack-order", "", "show only calls nested in the order of the targets", set_order},
    {0, "graph", "", "show calls as an indented graph with durations", set_graph},
    {0, "addresses", "", "show pointers to structs alone, without the struct", set_addresses},
    {0, "depth", "N", "show only N levels of nested calls", set_depth},
    {0, "when", "EXPR", "show only calls of the first target that meet EXPR, with what they call", add_when},
    {0, "slower-than", "TIME", "show only calls that take longer, such as 10us, 2ms; with --graph: as --when",
     set_slower_than},
    {0, "before", "N", "with --when: also show the last N calls of the thread before", set_before},
    {'n', "events", "N", "end after N events", set_events},
};

int trace(const Options& options, const Host& host) {
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  run::follow_command(options, **environment);
  const trace::TraceOptions& trace_options = static_cast<const Own&>(*options.own).trace;
  auto script = trace::write_trace_script(trace::split_trace_targets(options.names), trace_options, **environment);
  return trace::run_target_script(std::move(script), options, **environment, host.prepare);
}

constexpr std::string_view kUsage[] = {"trace [OPTION...] TARGET..."};
constexpr std::string_view kCommon[] = {"pid",       "cmd",    "follow", "comm",  "cgroup",
                                        "container", "output", "format", "quiet", "dump"};
constexpr std::string_view kNotes = "`espy help target` explains TARGET.\n";
constexpr Example kExamples[] = {
    {"espy trace 'vfs_read(count > 4096, file->f_path.dentry->d_name.name, count)'",
     "show large reads, with the name of the file"},
    {"espy trace --graph --when 'return < 0' -c ./shop './shop:*'", "show failed calls with everything they called"}};

}  // namespace

extern const Command kTrace = {
    .word = "trace",
    .summary = "show calls and events as they happen, without a script",
    .operands = Operands::kNames,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<Own>()); },
    .usage = kUsage,
    .notes = kNotes,
    .common = kCommon,
    .examples = kExamples,
    .run = trace,
};

}  // namespace espy::cli
