#include "cli/emit.h"

#include "opt/pipeline.h"

namespace espy::cli {

std::vector<bpf::EmitProblem> emit(const ir::Module& module, kernel::Kernel& kernel, program::Program& program) {
  using kernel::Feature;
  const bool has_ordered_stores = kernel.arch().has_ordered_stores;
  const bpf::Target target{.v3 = kernel.has(Feature::kBpfV3),
                           .v4 = kernel.has(Feature::kBpfV4),
                           .has_ordered_stores = has_ordered_stores,
                           .has_store_release = !has_ordered_stores && kernel.has(Feature::kStoreRelease)};
  if (kernel.has(Feature::kMayGoto)) {
    for (const uint32_t depth : {5, 2, 1}) {  // the kernel allows eight frames, and callbacks take some
      const std::optional<ir::Module> outlined = opt::outline_loops(module, depth);
      if (!outlined) break;
      program::Program outlined_program = program;
      if (!bpf::emit(*outlined, target, outlined_program).empty()) continue;
      program = std::move(outlined_program);
      return {};
    }
  }
  return bpf::emit(module, target, program);
}

}  // namespace espy::cli
