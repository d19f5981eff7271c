// differential [--seconds=S] [--expressions=N] [--programs=N] [--seed=FIRST] [--progress=FILE]: many random scripts
// before the judges; see differential.h.
//
// Each seed gives a script of expressions and a program. The run ends after S seconds, after N of both, or by SIGTERM,
// and prints its sums in one line, with the seed that comes next. FILE has the seed that is being tried: it is the one
// that crashed if this process did. Exit status 1 if the judges disagreed.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "support/differential.h"
#include "support/generate.h"

namespace {

using espy::differential::GeneratedExpression;
using espy::differential::Judges;

constexpr uint32_t kExpressionsPerScript = 20;
constexpr uint32_t kProgramsPerScript = 5;  // programs for each script of expressions, if time is the only limit

volatile sig_atomic_t is_stopped = 0;

struct Limits {
  uint32_t seconds = 0, expressions = 0, programs = 0;  // 0: no limit
  uint32_t first_seed = 1;
  std::string progress;
};

struct Tally {
  uint32_t judged = 0, rejected = 0, disagreements = 0;
};

// False if the script did not compile.
bool try_one(Judges& judges, const std::string& script, const char* kind, uint32_t seed, Tally& tally) {
  bool is_rejected = false;
  const std::string trouble = espy::differential::judge(judges, script, is_rejected);
  if (is_rejected) return false;
  if (trouble.empty()) return true;
  ++tally.disagreements;
  fmt::print("{} of seed {}:\n{}\n{}\n", kind, seed, trouble, tally.disagreements <= 5 ? script : "");
  return true;
}

// All in one script, or, where a literal form overflows, each in one of its own.
void try_expressions(Judges& judges, uint32_t seed, Tally& tally) {
  const auto expressions = espy::differential::generate_expressions(seed, kExpressionsPerScript);
  std::string script;
  for (const GeneratedExpression& each : expressions) script += each.both;
  tally.judged += kExpressionsPerScript;
  if (try_one(judges, script, "expressions", seed, tally)) return;
  std::string rest;
  for (const GeneratedExpression& each : expressions) {
    if (try_one(judges, each.both, "expression", seed, tally)) continue;
    ++tally.rejected;
    rest += each.variable;
  }
  if (!rest.empty() && !try_one(judges, rest, "expressions in variables", seed, tally))
    fmt::print("seed {}: not compiled:\n{}\n", seed, rest);
}

void note_progress(const std::string& path, uint32_t seed) {
  if (path.empty()) return;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const std::string text = std::to_string(seed) + "\n";
  if (file < 0 || ::write(file, text.data(), text.size()) < 0) std::abort();
  ::close(file);
}

Limits parse_arguments(int argc, char** argv) {
  Limits limits;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto number = [&](std::string_view option, uint32_t& value) {
      if (argument.starts_with(option))
        value = static_cast<uint32_t>(std::strtoul(argv[i] + option.size(), nullptr, 0));
    };
    number("--seconds=", limits.seconds);
    number("--expressions=", limits.expressions);
    number("--programs=", limits.programs);
    number("--seed=", limits.first_seed);
    if (constexpr std::string_view kProgress = "--progress="; argument.starts_with(kProgress))
      limits.progress = argument.substr(kProgress.size());
  }
  if (limits.seconds == 0 && limits.expressions == 0 && limits.programs == 0) limits.seconds = 60;
  return limits;
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const Limits limits = parse_arguments(argc, argv);
  ::signal(SIGTERM, [](int) { is_stopped = 1; });
  const Clock::time_point end = Clock::now() + std::chrono::seconds(limits.seconds);
  Judges judges("tests/kernels/6.18-x86_64");
  if (!judges.has_kernel()) fmt::print("without the kernel: it does not let us load programs\n");
  Tally expressions, programs;
  uint32_t seed = limits.first_seed;
  for (; is_stopped == 0 && (limits.seconds == 0 || Clock::now() < end); ++seed) {
    const bool wants_expressions =
        limits.seconds > 0 ? seed % kProgramsPerScript == 0 : expressions.judged < limits.expressions;
    const bool wants_program = limits.seconds > 0 || programs.judged < limits.programs;
    if (!wants_expressions && !wants_program) break;
    note_progress(limits.progress, seed);
    if (wants_expressions) try_expressions(judges, seed, expressions);
    if (!wants_program) continue;
    const bool is_compiled = try_one(judges, espy::differential::generate_program(seed), "program", seed, programs);
    ++(is_compiled ? programs.judged : programs.rejected);
  }
  const uint32_t disagreements = expressions.disagreements + programs.disagreements;
  fmt::print(
      "{} expressions ({} only in variables, as their literals overflow), {} programs ({} more not compiled, {} too "
      "complex for the verifier), {} disagreements, next seed {}{}\n",
      expressions.judged, expressions.rejected, programs.judged, programs.rejected, judges.too_complex, disagreements,
      seed, judges.has_kernel() ? "" : ", without a kernel");
  return disagreements == 0 ? 0 : 1;
}
