#include "golden/support/live.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>

#include "base/fd.h"
#include "base/strings.h"
#include "golden/support/child.h"

namespace espy::golden {

namespace {

constexpr uint32_t kTimeoutMs = 30'000;

struct LiveCase {
  std::string workload, arguments = "$FILE", target, run, needs;
  bool ends_itself = false;
  int exit_status = 0;
  uint32_t timeout_ms = kTimeoutMs;
  std::vector<std::pair<std::string, std::string>> demands;  // expect, reject, check
};

LiveCase parse(std::string_view text) {
  LiveCase out;
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(": ");
    if (!line.starts_with("// ") || colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(3, colon - 3);
    const std::string value(trim(line.substr(colon + 2)));
    if (key == "workload") out.workload = value;
    if (key == "args") out.arguments = value;
    if (key == "target") out.target = value;
    if (key == "run") out.run = value;
    if (key == "needs") out.needs = value;
    if (key == "ends") out.ends_itself = true;
    if (key == "seconds") out.timeout_ms = static_cast<uint32_t>(parse_int(value).value_or(0)) * 1000;
    if (key == "exit") out.exit_status = static_cast<int>(parse_int(value).value_or(0));
    if (key == "expect" || key == "reject" || key == "check" || key == "expect stderr")
      out.demands.emplace_back(key, value);
  }
  return out;
}

// Everything by one shell: it knows the pids, and nothing outlives it.
std::string shell_script(const LiveCase& c) {
  const std::string command = c.run.empty() ? "$ESPY " + c.arguments : c.run;
  std::string out = "set -m\n";
  if (!c.target.empty()) out += fmt::format("( exec {} ) & TARGET=$!; export TARGET; sleep 0.3\n", c.target);
  out += fmt::format("{} & TRACER=$!\n", command);
  if (!c.ends_itself || !c.workload.empty())
    out += "n=0; until grep -q '^Attached' \"$ERR\" || [ $n = 100 ]; do sleep 0.1; n=$((n+1)); done\n";
  if (!c.workload.empty()) out += fmt::format("( {} ) >/dev/null 2>&1 </dev/null\n", c.workload);
  if (!c.ends_itself) out += "sleep 0.2; kill -INT $TRACER\n";
  out += "wait $TRACER; status=$?\n";
  if (!c.target.empty()) out += "kill -KILL -$TARGET 2>/dev/null\n";
  return out + "exit $status\n";
}

bool has_line(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  for (const std::string_view line : split(text, '\n'))
    if (std::regex_match(line.begin(), line.end(), regex)) return true;
  return false;
}

using Environment = std::vector<std::pair<std::string, std::string>>;

std::string unmet(const LiveCase& c, const Outcome& outcome, const Environment& environment) {
  std::string text;
  for (const auto& [kind, demand] : c.demands) {
    bool is_met = true;
    if (kind == "expect") is_met = has_line(outcome.out, demand);
    if (kind == "expect stderr") is_met = has_line(outcome.err, demand);
    if (kind == "reject") is_met = !has_line(outcome.out, demand);
    if (kind == "check")
      is_met = run_program({"/bin/sh", "-c", "( " + demand + " ) <\"$OUT\""}, "", environment, kTimeoutMs).status == 0;
    if (!is_met) text += fmt::format("not met: {}: {}\n", kind, demand);
  }
  if (outcome.status != c.exit_status) text += fmt::format("exit status {}, not {}\n", outcome.status, c.exit_status);
  return text;
}

}  // namespace

Judgement run_live_test(const std::string& path, const Places& places) {
  if (!places.no_live.empty()) return {Verdict::kSkipped, places.no_live};
  const auto text = read_file(path);
  if (!text) return {Verdict::kFailed, text.error().message};
  const LiveCase c = parse(*text);
  const std::string scratch = fmt::format("/tmp/espy-live.{}", ::getpid());
  const Environment environment = {{"ESPY", places.espy},
                                   {"FILE", fmt::format("{}/{}", places.root, path)},
                                   {"BIN", places.espy.substr(0, places.espy.rfind('/')) + "/tests/live"},
                                   {"OUT", scratch + ".out"},
                                   {"ERR", scratch + ".err"}};
  if (!c.needs.empty() && run_program({"/bin/sh", "-c", c.needs}, "", environment, kTimeoutMs).status != 0)
    return {Verdict::kSkipped, "this machine lacks: " + c.needs};
  const std::string script = "exec >\"$OUT\" 2>\"$ERR\"\n" + shell_script(c);
  Outcome outcome = run_program({"/bin/bash", "-c", script}, "", environment, c.timeout_ms);
  outcome.out = read_file(scratch + ".out").value_or("");
  outcome.err = read_file(scratch + ".err").value_or("");
  std::string trouble = outcome.timed_out ? "it did not end\n" : unmet(c, outcome, environment);
  ::unlink((scratch + ".out").c_str());
  ::unlink((scratch + ".err").c_str());
  if (trouble.empty()) return {};
  return {Verdict::kFailed, trouble + "stdout:\n" + outcome.out + "stderr:\n" + outcome.err};
}

}  // namespace espy::golden
