// differential EXPRESSIONS PROGRAMS [FIRST_SEED]: many random scripts before the judges; see differential.h.
#include <fmt/format.h>

#include <cstdlib>

#include "support/differential.h"
#include "support/generate.h"

namespace {

constexpr uint32_t kExpressionsPerScript = 20;

struct Tally {
  uint32_t scripts = 0, rejected = 0, disagreements = 0;
};

void try_one(espy::differential::Judges& judges, const std::string& script, const char* kind, uint32_t seed,
             Tally& tally) {
  bool is_rejected = false;
  const std::string trouble = espy::differential::judge(judges, script, is_rejected);
  ++tally.scripts;
  tally.rejected += is_rejected;
  if (trouble.empty()) return;
  ++tally.disagreements;
  fmt::print("{} of seed {}:\n{}\n{}\n", kind, seed, trouble, tally.disagreements <= 5 ? script : "");
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
  for (uint32_t seed = first; expression_tally.scripts * kExpressionsPerScript < expressions; ++seed)
    try_one(judges, espy::differential::generate_expressions(seed, kExpressionsPerScript), "expressions", seed,
            expression_tally);
  for (uint32_t seed = first; program_tally.scripts < programs; ++seed)
    try_one(judges, espy::differential::generate_program(seed), "program", seed, program_tally);
  fmt::print("{} scripts of {} expressions ({} not compiled), {} programs ({} not compiled), {} disagreements\n",
             expression_tally.scripts, kExpressionsPerScript, expression_tally.rejected, program_tally.scripts,
             program_tally.rejected, expression_tally.disagreements + program_tally.disagreements);
  return expression_tally.disagreements + program_tally.disagreements == 0 ? 0 : 1;
}
