#include "cli/bind_probes.h"

namespace espy::cli {

std::vector<spec::BoundProbe> bind_probes(Environment& environment, const spec::Config& config,
                                          const spec::Provider& provider, const std::vector<std::string>& parts,
                                          bool has_types, source::Diagnostics& diagnostics, bool uses_locals) {
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
                            .uses_locals = uses_locals,
                            .uses_retval = has_types,
                            .provider = &provider};
  return provider.bind(request);
}

bool is_about_returns(const source::Diagnostic& diagnostic) {
  return diagnostic.id == "returns-not-seen" || diagnostic.id == "stops-exceptions";
}

spec::ProbeContext context_of(Environment& environment, const spec::Provider& provider, const spec::BoundProbe& bound,
                              bool has_types, bool uses_locals) {
  spec::ContextRequest request{.probes = std::span(&bound.probe, 1),
                               .share = bound.share,
                               .kernel = *environment.kernel,
                               .types = environment.types,
                               .uses_args = has_types,
                               .symbols = &environment.symbols,
                               .uses_locals = uses_locals,
                               .uses_retval = has_types,
                               .provider = &provider};
  return provider.context(request);
}

}  // namespace espy::cli
