// fuzz_load [--seed=N] SECONDS [SEED-FILE...]    (as root; for 0 seconds, the files as they are)
//
// Compiles damaged scripts for the running kernel, whose verifier must accept each program: nothing is attached.
// Refusals are printed, a cause once, and counted.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compile_script.h"
#include "load/machine.h"
#include "scripts.h"

namespace {

using namespace espy;
using fuzz::Counts;

enum Count : uint8_t { kAccepted, kTooLarge, kLoaded, kRefused };

class Loader {
 public:
  void try_one(const std::string& script, Counts& counts) {
    fuzz::Compilation compilation;
    compiler_.compile(script, compilation);
    if (!compilation.is_accepted) return;
    ++counts.of[kAccepted];
    if (!compilation.program) {
      ++counts.of[kTooLarge];
      return;
    }
    const auto machine = load::open_linux();
    machine->use_btf({[this](std::string_view name) { return kernel_->kfunc_id(name); }, nullptr});
    const Status loaded = machine->load(*compilation.program, compilation.types, compilation.sources);
    ++counts.of[loaded ? kLoaded : kRefused];
    if (loaded) return;
    const auto& refusal = machine->refusal();
    const std::string sentence = refusal ? refusal->sentence : loaded.error().message;
    if (!seen_.insert(without_numbers(sentence)).second) return;
    std::printf("refused: %s\n--- script\n%s\n---\n", sentence.c_str(), script.c_str());
    std::fflush(stdout);
  }

 private:
  std::unique_ptr<kernel::Kernel> open() const {
    auto kernel = kernel::open_kernel("/", {[this](kernel::Feature f) { return prober_->try_feature(f); }});
    if (kernel) return std::move(*kernel);
    std::fprintf(stderr, "%s\n", kernel.error().message.c_str());
    std::exit(EXIT_FAILURE);
  }

  static std::string without_numbers(const std::string& text) {
    std::string out;
    for (const char c : text)
      if (c < '0' || c > '9') out += c;
    return out;
  }

  std::unique_ptr<load::Machine> prober_ = load::open_linux();
  std::unique_ptr<kernel::Kernel> kernel_ = open();
  fuzz::ScriptCompiler compiler_{*kernel_};
  std::set<std::string> seen_;
};

}  // namespace

int main(int argc, char** argv) {
  uint32_t seed = 1;
  int seconds = -1;
  std::vector<std::string> scripts;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0)
      seed = static_cast<uint32_t>(std::strtoul(argv[i] + 7, nullptr, 10));
    else if (seconds < 0)
      seconds = std::atoi(argv[i]);
    else
      scripts.push_back(fuzz::read_whole(argv[i]));
  }
  Loader loader;
  if (seconds == 0) {
    Counts counts = {};
    for (const std::string& script : scripts) loader.try_one(script, counts);
    return 0;
  }
  const fuzz::ScriptMutator mutator(std::move(scripts));
  const auto next = [&](fuzz::Random& random) { return mutator.next(random); };
  const auto try_one = [&](const std::string& script, Counts& counts) { loader.try_one(script, counts); };
  return fuzz::drive("load", seconds < 0 ? 5 : seconds, seed,
                     {next, try_one, {"accepted", "too large", "loaded", "refused"}, 5000});
}
