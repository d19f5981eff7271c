// Attach points that are words of the command line: their parts and their probes. Quotes keep colons, commas and
// parentheses in a part, as in scripts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "run/environment.h"
#include "source/diagnostic.h"
#include "spec/config.h"
#include "spec/provider.h"

namespace espy::run {

// Returns the position of a character outside of quotes; npos if there is none.
size_t find_unquoted(std::string_view text, char wanted, size_t from = 0);

// Splits at each separator outside of quotes; the quotes remain.
std::vector<std::string> split_unquoted(std::string_view text, char separator);

// Splits an attach point into its parts, without their quotes.
std::vector<std::string> split_attach_point(std::string_view text);

// Returns the probes that the attach point stands for; none if it is wrong or stands for nothing, with the reasons in
// `diagnostics`. `uses`: the facts to take from debug information; the rest of the context is there in any case.
std::vector<spec::BoundProbe> bind_probes(Environment& environment, const spec::Config& config,
                                          const spec::Provider& provider, const std::vector<std::string>& parts,
                                          spec::Uses uses, source::Diagnostics& diagnostics);

// Whether it warns of returns that end a program, or are not seen. The checker does not bind the probes of wildcards
// again, so commands have to show this.
bool is_about_returns(const source::Diagnostic& diagnostic);

// Returns what programs of such a probe can read.
spec::ProbeContext context_of(Environment& environment, const spec::Provider& provider, const spec::BoundProbe& bound,
                              spec::Uses uses);

}  // namespace espy::run
