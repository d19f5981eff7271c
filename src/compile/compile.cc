#include "compile/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "bpf/emit.h"
#include "lower/lower.h"

namespace espy::compile {

namespace {

// Tried in this order: deeper chains of calls outline more loops and need more stack. The kernel allows eight frames
// (MAX_CALL_FRAMES); callbacks of the script take some of them.
constexpr uint32_t kCallDepths[] = {5, 2, 1};

// The verifier stops at 8192 branches in a row (BPF_COMPLEXITY_LIMIT_JMP_SEQ). A function of more branches has that
// many in a row, unless most of them exclude each other.
constexpr ptrdiff_t kMostBranches = 8192;

bool is_too_long(const ir::Function& function) {
  const auto branches = [&](const ir::Block& block) {
    return function.values[block.instructions.back()].op == ir::Op::k_branch;
  };
  return std::ranges::count_if(function.blocks, branches) > kMostBranches;
}

class Compilation {
 public:
  Compilation(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, const Options& options)
      : kernel_(kernel),
        options_(options),
        lowered_(lower::lower(
            checked, types, kernel,
            {.separate_programs = options.separate_programs, .loops_for_unroll = options.loops_for_unroll})) {
    notify(Stage::kLower, lowered_.ir);
  }

  // Whether copies of an `unroll` make a function too long for the verifier. Optimization removes few branches.
  bool has_too_many_copies() const {
    return lowered_.has_copies && std::ranges::any_of(lowered_.ir.functions, is_too_long);
  }

  std::vector<bpf::EmitProblem> run() {
    if (options_.optimize) opt::optimize(lowered_.ir, options_.after_pass);
    notify(Stage::kOptimize, lowered_.ir);
    const bool is_outlined = options_.outline_loops && emit_outlined();
    const std::vector<bpf::EmitProblem> problems = is_outlined ? std::vector<bpf::EmitProblem>() : emit(lowered_.ir);
    notify(Stage::kEmit, lowered_.ir);
    return problems;
  }

  lower::Lowered& lowered() { return lowered_; }

 private:
  void notify(Stage stage, const ir::Module& ir) const {
    if (options_.observer) options_.observer({stage, ir, lowered_.program});
  }

  std::vector<bpf::EmitProblem> emit(const ir::Module& module) {
    using kernel::Feature;
    const bool has_ordered_stores = kernel_.arch().has_ordered_stores;
    const bpf::Target target{.v3 = kernel_.has(Feature::kBpfV3),
                             .v4 = kernel_.has(Feature::kBpfV4),
                             .has_ordered_stores = has_ordered_stores,
                             .has_store_release = !has_ordered_stores && kernel_.has(Feature::kStoreRelease)};
    return bpf::emit(module, target, lowered_.program);
  }

  // Returns whether there is code now; false if no loop has to be outlined, or if the stack is too small for it. The
  // functions need Linux 6.3, where a call may pass memory that is not all written; may_goto is newer than that.
  bool emit_outlined() {
    if (!kernel_.has(kernel::Feature::kMayGoto)) return false;
    for (const uint32_t depth : kCallDepths) {
      const std::optional<ir::Module> outlined =
          opt::optimize_for_verifier(lowered_.ir, {.max_call_depth = depth}, options_.after_pass);
      if (!outlined) return false;
      notify(Stage::kOutlineLoops, *outlined);
      if (emit(*outlined).empty()) return true;
    }
    return false;
  }

  kernel::Kernel& kernel_;
  const Options& options_;
  lower::Lowered lowered_;
};

source::Diagnostics errors_of(const std::vector<bpf::EmitProblem>& problems, const program::Program& program) {
  source::Diagnostics out;
  for (const bpf::EmitProblem& problem : problems) {
    const program::BpfProgram& code = program.programs[problem.program];
    if (problem.stack_bytes == 0) {
      report_too_long(out, code.first_span());
      continue;
    }
    out.error(
        "stack-too-large", code.first_span(),
        fmt::format("the program `{}` needs {} bytes of stack, the kernel gives 512", code.name, problem.stack_bytes));
  }
  return out;
}

}  // namespace

void report_too_long(source::Diagnostics& diagnostics, source::Span span) {
  diagnostics.error("action-too-long", span,
                    "the action is too long for the kernel: it examines at most a million instructions, and 8192 "
                    "branches in a row",
                    "split it into several actions; the actions of a probe run in the order of the script");
}

Compiled compile(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, const Options& options) {
  Compilation compilation(checked, types, kernel, options);
  lower::Lowered& lowered = compilation.lowered();
  std::vector<bpf::EmitProblem> problems;
  const bool has_too_many_copies = compilation.has_too_many_copies();
  if (!has_too_many_copies) problems = compilation.run();
  Options other = options;
  other.loops_for_unroll |= has_too_many_copies || (!problems.empty() && lowered.has_copies);
  other.separate_programs |= !problems.empty() && lowered.has_merged_programs;
  if (has_too_many_copies || (!problems.empty() && (lowered.has_copies || lowered.has_merged_programs)))
    return compile(checked, types, kernel, other);
  source::Diagnostics diagnostics = errors_of(problems, lowered.program);
  return {std::move(lowered.program), lowered.has_merged_programs, lowered.has_copies, std::move(diagnostics)};
}

}  // namespace espy::compile
