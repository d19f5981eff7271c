// Errors in the script of `espy trace`, at the places of the targets that the user typed.
#pragma once

#include <vector>

#include "cli/trace_script.h"
#include "source/diagnostic.h"

namespace espy::cli {

// `targets`: the sources that hold the texts of the parts of `script`, in order; `conditions`: those of --when.
// Diagnostics about other texts are returned as they are.
source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script,
                             const std::vector<source::SourceId>& targets,
                             const std::vector<source::SourceId>& conditions, const source::Sources& sources);

}  // namespace espy::cli
