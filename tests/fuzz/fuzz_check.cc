// fuzz_check [--load] [--seed=N] SECONDS [SEED-FILE...]
//
// Whole compilations of damaged scripts; for 0 seconds, of the files as they are. No text may crash, hang or leak; what
// the checker accepts must lower to sound IR, stay sound under every pass, and become instructions. With --load (root)
// the kernel is the running one, and its verifier must accept each program: nothing is attached. Refusals are printed,
// a cause once, and counted.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "check/check.h"
#include "cli/registry.h"
#include "compile/compile.h"
#include "ir/text.h"
#include "load/machine.h"
#include "scripts.h"
#include "symbols/symbols.h"
#include "syntax/parser.h"

namespace {

using namespace espy;
using fuzz::Counts;

enum Count : uint8_t { kParsed, kAccepted, kTooLarge, kLoaded, kRefused };

[[noreturn]] void give_up(const char* what, const std::string& script, const std::string& details) {
  std::fprintf(stderr, "%s\n%s\n--- script\n%s\n", what, details.c_str(), script.c_str());
  std::abort();
}

const char* name_of(compile::Stage stage) {
  switch (stage) {
    case compile::Stage::kLower: return "lowered";
    case compile::Stage::kOptimize: return "optimized";
    case compile::Stage::kOutlineLoops: return "outlined";
    case compile::Stage::kEmit: return "emitted";
  }
  return "";
}

class Compiler {
 public:
  explicit Compiler(bool is_loading) : is_loading_(is_loading) {
    load::Machine* prober = nullptr;
    if (is_loading) {
      prober_ = load::open_linux();
      prober = prober_.get();
    }
    auto kernel = is_loading
                      ? kernel::open_kernel("/", {[prober](kernel::Feature f) { return prober->try_feature(f); }})
                      : kernel::open_recorded_kernel("tests/kernels/6.18-x86_64");
    if (!kernel) {
      std::fprintf(stderr, "%s (run it in the top directory)\n", kernel.error().message.c_str());
      std::exit(EXIT_FAILURE);
    }
    kernel_ = std::move(*kernel);
  }

  void try_one(const std::string& script, Counts& counts) {
    types::Types types;
    source::Sources sources;
    source::Diagnostics diagnostics;
    const source::SourceId source = sources.add("stdin", script);
    syntax::Ast ast = syntax::parse(sources, source, diagnostics);
    if (!diagnostics.has_errors()) ++counts.of[kParsed];
    spec::Config config;
    config.allow_unsafe = true;
    const bool has_parse_errors = diagnostics.has_errors();
    check::CheckRequest request{sources, registry_, *kernel_, types, &symbolizer_, config, diagnostics};
    const check::Checked checked = check::check(std::move(ast), request);
    render(diagnostics, sources);
    if (has_parse_errors || diagnostics.has_errors()) return;
    ++counts.of[kAccepted];
    compile::Options options;
    options.observer = [&](const compile::StageResult& result) {
      const std::string wrong = ir::verify(result.ir);
      if (!wrong.empty()) give_up(name_of(result.stage), script, wrong);
    };
    options.after_pass = [&](std::string_view pass, const ir::Module& module) {
      const std::string wrong = ir::verify(module);
      if (!wrong.empty()) give_up(std::string("after ").append(pass).c_str(), script, wrong);
    };
    const compile::Compiled compiled = compile::compile(checked, types, *kernel_, options);
    if (compiled.diagnostics.has_errors()) {
      ++counts.of[kTooLarge];
      return;
    }
    if (is_loading_) try_load(script, compiled.program, types, sources, counts);
  }

 private:
  void try_load(const std::string& script, const program::Program& program, const types::Types& types,
                const source::Sources& sources, Counts& counts) {
    const auto machine = load::open_linux();
    kernel::Kernel* kernel = kernel_.get();
    machine->use_btf({[kernel](std::string_view name) { return kernel->kfunc_id(name); }, nullptr});
    const Status loaded = machine->load(program, types, sources);
    ++counts.of[loaded ? kLoaded : kRefused];
    if (loaded) return;
    const auto& refusal = machine->refusal();
    const std::string sentence = refusal ? refusal->sentence : loaded.error().message;
    if (!seen_.insert(without_numbers(sentence)).second) return;
    std::printf("refused: %s\n--- script\n%s\n---\n", sentence.c_str(), script.c_str());
    std::fflush(stdout);
  }

  static std::string without_numbers(const std::string& text) {
    std::string out;
    for (const char c : text)
      if (c < '0' || c > '9') out += c;
    return out;
  }

  bool is_loading_;
  std::unique_ptr<load::Machine> prober_;
  std::unique_ptr<kernel::Kernel> kernel_;
  spec::Registry registry_ = cli::make_registry();
  symbols::Symbolizer symbolizer_;
  std::set<std::string> seen_;
};

}  // namespace

int main(int argc, char** argv) {
  bool is_loading = false;
  uint32_t seed = 1;
  int seconds = -1;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--load") == 0) {
      is_loading = true;
    } else if (std::strncmp(argv[i], "--seed=", 7) == 0) {
      seed = static_cast<uint32_t>(std::strtoul(argv[i] + 7, nullptr, 10));
    } else if (seconds < 0) {
      seconds = std::atoi(argv[i]);
    } else {
      files.emplace_back(argv[i]);
    }
  }
  Compiler compiler(is_loading);
  if (seconds == 0) {
    Counts counts = {};
    for (const std::string& file : files) compiler.try_one(fuzz::read_whole(file.c_str()), counts);
    return 0;
  }
  const auto mutator = fuzz::ScriptMutator::with_seeds(files);
  const auto next = [&](fuzz::Random& random) {
    return random() % 16 == 0 ? mutator.by_bytes(random) : mutator.by_pieces(random);
  };
  const auto try_one = [&](const std::string& script, Counts& counts) { compiler.try_one(script, counts); };
  return fuzz::drive("check", seconds < 0 ? 5 : seconds, seed,
                     {next, try_one, {"parsed", "accepted", "too large", "loaded", "refused"}, 5000});
}
