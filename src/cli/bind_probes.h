// Probes of attach points that are words of the command line, for the scripts that commands write.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "spec/provider.h"

namespace espy::cli {

// Returns the probes that the attach point stands for; none if it is wrong or stands for nothing, with the reasons in
// `diagnostics`. `has_types`: the types of arguments and results are wanted, as debug information has them.
std::vector<spec::BoundProbe> bind_probes(Environment& environment, const spec::Config& config,
                                          const spec::Provider& provider, const std::vector<std::string>& parts,
                                          bool has_types, source::Diagnostics& diagnostics, bool uses_locals = false);

// Whether it warns of returns that end a program, or are not seen. The checker does not bind the probes of wildcards
// again, so commands have to show this.
bool is_about_returns(const source::Diagnostic& diagnostic);

// Returns what programs of such a probe can read.
spec::ProbeContext context_of(Environment& environment, const spec::Provider& provider, const spec::BoundProbe& bound,
                              bool has_types, bool uses_locals = false);

}  // namespace espy::cli
