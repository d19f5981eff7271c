// differential EXPRESSIONS PROGRAMS [FIRST_SEED]: many random scripts before the judges; see differential.h.
#include <fmt/format.h>

#include <cstdlib>

#include "support/differential.h"
#include "support/generate.h"

namespace {

using espy::differential::GeneratedExpression;
using espy::differential::Judges;

constexpr uint32_t kExpressionsPerScript = 20;

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

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, uint32_t otherwise) {
    return argc > index ? static_cast<uint32_t>(std::strtoul(argv[index], nullptr, 0)) : otherwise;
  };
  const uint32_t expressions = number(1, 20000), programs = number(2, 3000), first = number(3, 1);
  espy::differential::Judges judges("tests/kernels/6.18-x86_64");
  if (!judges.has_kernel()) fmt::print("without the kernel: it does not let us load programs\n");
  Tally expression_tally, program_tally;
  for (uint32_t seed = first; expression_tally.judged < expressions; ++seed)
    try_expressions(judges, seed, expression_tally);
  for (uint32_t seed = first; program_tally.judged < programs; ++seed) {
    const bool is_compiled =
        try_one(judges, espy::differential::generate_program(seed), "program", seed, program_tally);
    ++(is_compiled ? program_tally.judged : program_tally.rejected);
  }
  fmt::print(
      "{} expressions ({} only in variables, as their literals overflow), {} programs ({} more not compiled), {} "
      "disagreements\n",
      expression_tally.judged, expression_tally.rejected, program_tally.judged, program_tally.rejected,
      expression_tally.disagreements + program_tally.disagreements);
  return expression_tally.disagreements + program_tally.disagreements == 0 ? 0 : 1;
}
