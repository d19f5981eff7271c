#include "golden/support/live_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "golden/support/header.h"

namespace espy::golden {

namespace {

constexpr HeaderKey kKeys[] = {{"workload"},     {"until"},
                               {"args"},         {"target"},
                               {"command"},      {"peer"},
                               {"run"},          {"needs"},
                               {"ends"},         {"seconds"},
                               {"alone"},        {"exit"},
                               {"expect", true}, {"expect stderr", true},
                               {"reject", true}, {"reject stderr", true},
                               {"check", true}};

// wait_until COMMAND DESCRIPTION: repeats COMMAND until it succeeds or the tracer has ended. The deadline is for the
// case that nothing happens at all. What is still there at the end of the shell is killed.
constexpr std::string_view kPrologue = R"(set -m
exec >"$OUT" 2>"$ERR"
trap 'kill -KILL ${TARGET:+-$TARGET} ${TRACER:+-$TRACER} 2>/dev/null' EXIT
wait_until() {
  local deadline=$((SECONDS + 25 * ${TIME_FACTOR:-1}))
  until eval "$1" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || { echo "the test waited in vain until $2" >&2; exit 99; }
    [ -z "$TRACER" ] || kill -0 $TRACER 2>/dev/null || return
    sleep 0.02
  done
}
)";

Result<Demand> parse_demand(const std::string& path, const HeaderLine& line) {
  Demand demand{line.key, line.value, {}};
  if (line.key == "check") return demand;
  try {
    demand.pattern = line.value;
  } catch (const std::regex_error& error) {
    return fail_at(path, line.line_number, fmt::format("`{}:` {}", line.key, error.what()));
  }
  return demand;
}

Status set_value(LiveCase& out, const std::string& path, const HeaderLine& line) {
  const std::string& key = line.key;
  if (key == "workload") out.workload = line.value;
  if (key == "until") out.until = line.value;
  if (key == "args") out.arguments = line.value;
  if (key == "target") out.target = line.value;
  if (key == "command") {
    out.command = line.value;
    out.ends_itself = true;
  }
  if (key == "run") out.run = line.value;
  if (key == "needs") out.needs = line.value;
  if (key == "alone") out.alone = line.value;
  if (key == "ends") {
    if (line.value != "itself") return fail_at(path, line.line_number, "`ends:` must be `itself`");
    out.ends_itself = true;
  }
  if (key == "seconds" || key == "exit") {
    const std::optional<int64_t> number = parse_int(line.value);
    if (!number || *number < 0 || *number > 3600)
      return fail_at(path, line.line_number, fmt::format("`{}:` must be a number", key));
    if (key == "exit") out.exit_status = static_cast<int>(*number);
    if (key == "seconds") out.timeout_ms = static_cast<uint32_t>(*number) * 1000;
  }
  if (key.starts_with("expect") || key.starts_with("reject") || key == "check")
    out.demands.push_back(TRY(parse_demand(path, line)));
  return {};
}

bool has_line(const std::string& text, const std::regex& pattern) {
  return std::ranges::any_of(
      split(text, '\n'), [&](std::string_view line) { return std::regex_match(line.begin(), line.end(), pattern); });
}

}  // namespace

Result<LiveCase> parse_live_case(const std::string& path, std::string_view text) {
  LiveCase out;
  for (const HeaderLine& line : TRY(read_header(path, text, kKeys))) TRY_STATUS(set_value(out, path, line));
  if (!out.command.empty() && !out.run.empty()) return fail(fmt::format("{}: `command:` with `run:`", path));
  if (!out.until.empty() && out.ends_itself) return fail(fmt::format("{}: `until:` with `ends: itself`", path));
  const auto is_positive = [](const Demand& demand) { return !demand.key.starts_with("reject"); };
  if (std::ranges::none_of(out.demands, is_positive) && out.exit_status == 0)
    return fail(fmt::format("{}: it expects nothing: a tracer that does nothing would pass", path));
  return out;
}

std::string unmet_demands(const LiveCase& c, const Outcome& outcome) {
  std::string out;
  for (const Demand& demand : c.demands) {
    if (demand.key == "check") continue;
    const std::string& text = demand.key.ends_with(" stderr") ? outcome.err : outcome.out;
    if (has_line(text, demand.pattern) != demand.key.starts_with("expect"))
      out += fmt::format("not met: {}: {}\n", demand.key, demand.text);
  }
  if (outcome.status != c.exit_status) out += fmt::format("exit status {}, not {}\n", outcome.status, c.exit_status);
  return out;
}

std::string shell_program(const LiveCase& c) {
  std::string out(kPrologue);
  if (!c.target.empty()) {
    out += fmt::format("( exec {} ) & TARGET=$!; export TARGET\n", c.target);
    out += "wait_until '! cmp -s /proc/$TARGET/cmdline /proc/$$/cmdline' 'the target runs'\n";
  }
  std::string tracer = c.run.empty() ? "$ESPY " + c.arguments : c.run;
  if (!c.command.empty()) {
    out += fmt::format("cat >$SCRATCH/command <<'END'\n{}\nEND\n", c.command);
    tracer = "$ESPY -c \"/bin/sh $SCRATCH/command\" " + c.arguments;
  }
  out += fmt::format("{} & TRACER=$!\n", tracer);
  if (!c.ends_itself || !c.workload.empty())
    out += "wait_until 'grep -q ^Attached \"$ERR\"' 'the probes are attached'\n";
  if (!c.workload.empty()) out += fmt::format("( {} ) >/dev/null 2>&1 </dev/null\n", c.workload);
  if (!c.until.empty()) out += fmt::format("until_it() {{\n{}\n}}\nwait_until until_it 'until:'\n", c.until);
  if (!c.ends_itself) out += "kill -INT $TRACER\n";
  return out + "wait $TRACER; status=$?; TRACER=\nexit $status\n";
}

}  // namespace espy::golden
