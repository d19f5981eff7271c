// The passes and their order. Variables become values first, since everything else looks at values; then the cheap
// passes that feed each other repeat until nothing changes; stores go last, when the loads they would be kept for are
// gone.
#include "opt/pipeline.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "ir/text.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

struct Pass {
  std::string_view name;
  bool (*run)(ir::Function&);
};

constexpr Pass kOnce[] = {{"mem2reg", mem2reg}};
constexpr Pass kRepeated[] = {{"fold_constants", fold_constants},
                              {"cse", cse},
                              {"store_to_load", store_to_load},
                              {"map_lookup_cse", map_lookup_cse},
                              {"correlated_branches", correlated_branches},
                              {"simplify_cfg", simplify_cfg},
                              {"dce", dce}};
constexpr Pass kLast[] = {{"dse", dse}, {"dce", dce}};

// Each round ends where the one before left nothing to do; scripts need two or three.
constexpr int kMaxRounds = 6;

bool run(const Pass& pass, ir::Module& module, ir::Function& function, const PassObserver& after_pass) {
  if (!pass.run(function)) return false;
  if (after_pass) after_pass(pass.name, module);
  return true;
}

void optimize_function(ir::Module& module, ir::Function& function, const PassObserver& after_pass) {
  for (const Pass& pass : kOnce) run(pass, module, function, after_pass);
  // A pass need not run again unless another one has changed something since.
  std::array<int, std::size(kRepeated)> seen;
  seen.fill(-1);
  int changes = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    int before = changes;
    for (size_t i = 0; i < std::size(kRepeated); ++i) {
      if (seen[i] == changes) continue;
      if (run(kRepeated[i], module, function, after_pass)) ++changes;
      seen[i] = changes;
    }
    if (changes == before) break;
  }
  for (const Pass& pass : kLast) run(pass, module, function, after_pass);
}

}  // namespace

void verify_after_pass(std::string_view pass, const ir::Module& module) {
  const std::string wrong = ir::verify(module);
  if (wrong.empty()) return;
  fmt::print(stderr, "after {}: {}\n{}", pass, wrong, ir::print(module));
  UNREACHABLE("a pass broke the IR");
}

void optimize(ir::Module& module, const PassObserver& after_pass) {
  for (ir::Function& function : module.functions) optimize_function(module, function, after_pass);
}

bool run_pass(std::string_view name, ir::Function& function) {
  for (const Pass& pass : kOnce)
    if (pass.name == name) return pass.run(function);
  for (const Pass& pass : kRepeated)
    if (pass.name == name) return pass.run(function);
  for (const Pass& pass : kLast)
    if (pass.name == name) return pass.run(function);
  return false;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kOnce) names.push_back(pass.name);
  for (const Pass& pass : kRepeated) names.push_back(pass.name);
  names.push_back(kLast[0].name);
  return names;
}

}  // namespace espy::opt
