// The passes and their order. mem2reg is first, since all others work on values. The cheap passes, which enable each
// other, repeat until nothing changes. dse is last, when the loads that would keep stores alive are gone.
#include "opt/pipeline.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <span>

#include "base/fatal.h"
#include "ir/ir_text.h"

namespace espy::opt {

namespace {

struct Pass {
  std::string_view name;
  bool (*run)(ir::Function&);
};

struct ModulePass {
  std::string_view name;
  std::optional<ir::Module> (*run)(const ir::Module&, const ModuleLimits&);  // nullopt: nothing changes
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
constexpr ModulePass kForVerifier[] = {{"outline_loops", outline_loops}};

// Scripts need two or three rounds.
constexpr int kMaxRounds = 6;

constexpr std::string_view kOutlineCalls = "outline_calls";
constexpr size_t kMaxCalls = 256;  // of one helper: the kernel takes milliseconds for them

bool run(const Pass& pass, ir::Module& module, ir::Function& function, const PassObserver& after_pass) {
  if (!pass.run(function)) return false;
  if (after_pass) after_pass(pass.name, module);
  return true;
}

void optimize_function(ir::Module& module, ir::Function& function, const PassObserver& after_pass) {
  for (const Pass& pass : kOnce) run(pass, module, function, after_pass);
  // A pass runs again only if another one has changed something since.
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

const Pass* find_pass(std::string_view name) {
  for (const std::span<const Pass> passes :
       {std::span<const Pass>(kOnce), std::span<const Pass>(kRepeated), std::span<const Pass>(kLast)})
    for (const Pass& pass : passes)
      if (pass.name == name) return &pass;
  return nullptr;
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
  if (outline_calls(module, kMaxCalls) && after_pass) after_pass(kOutlineCalls, module);
}

std::optional<ir::Module> optimize_for_verifier(const ir::Module& module, const ModuleLimits& limits,
                                                const PassObserver& after_pass) {
  std::optional<ir::Module> out;
  for (const ModulePass& pass : kForVerifier) {
    std::optional<ir::Module> changed = pass.run(out ? *out : module, limits);
    if (!changed) continue;
    out = std::move(changed);
    if (after_pass) after_pass(pass.name, *out);
  }
  return out;
}

bool run_pass(std::string_view name, ir::Module& module) {
  for (const ModulePass& pass : kForVerifier) {
    if (pass.name != name) continue;
    std::optional<ir::Module> changed = pass.run(module, {.max_loop_branches = 0});
    if (changed) module = std::move(*changed);
    return changed.has_value();
  }
  if (name == kOutlineCalls) return outline_calls(module, 0);
  const Pass* pass = find_pass(name);
  CHECK(pass != nullptr);
  bool changed = false;
  for (ir::Function& function : module.functions) changed |= pass->run(function);
  return changed;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kOnce) names.push_back(pass.name);
  for (const Pass& pass : kRepeated) names.push_back(pass.name);
  names.push_back(kLast[0].name);
  names.push_back(kOutlineCalls);
  for (const ModulePass& pass : kForVerifier) names.push_back(pass.name);
  return names;
}

}  // namespace espy::opt
