#include "cli/bind_probes.h"

namespace espy::cli {

std::vector<spec::BoundProbe> bind_probes(Environment& environment, const spec::Config& config,
                                          const spec::Provider& provider, const std::vector<std::string>& parts,
                                          bool has_types, source::Diagnostics& diagnostics) {
  const syntax::AttachPoint point;
  spec::BindRequest request{.point = point,
                            .parts = parts,
                            .kernel = *environment.kernel,
                            .types = environment.types,
                            .symbols = &environment.symbols,
                            .config = config,
                            .diagnostics = diagnostics,
                            .missing = diagnostics,
                            .uses_args = has_types,
                            .uses_context = true,
                            .uses_retval = has_types,
                            .provider = &provider};
  return provider.bind(request);
}

}  // namespace espy::cli
