#include "cli/emit.h"

namespace espy::cli {

std::vector<bpf::EmitProblem> emit(const ir::Module& module, kernel::Kernel& kernel, program::Program& program,
                                   const opt::PassObserver& after_pass) {
  using kernel::Feature;
  const bpf::Target target{kernel.has(Feature::kBpfV3), kernel.has(Feature::kBpfV4)};
  if (kernel.has(Feature::kMayGoto)) {
    for (const uint32_t depth : {5, 2, 1}) {  // the kernel allows eight frames, and callbacks take some
      const std::optional<ir::Module> outlined = opt::outline_loops(module, depth);
      if (!outlined) break;
      if (after_pass) after_pass("outlined", *outlined);
      program::Program outlined_program = program;
      if (!bpf::emit(*outlined, target, outlined_program).empty()) continue;
      program = std::move(outlined_program);
      return {};
    }
  }
  return bpf::emit(module, target, program);
}

}  // namespace espy::cli
