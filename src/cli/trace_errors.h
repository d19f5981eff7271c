// Errors in the script of `espy trace`.
#pragma once

#include <vector>

#include "cli/trace_script.h"
#include "source/diagnostic.h"

namespace espy::cli {

// The diagnostic as it is shown, which is about what the user typed. One about an unknown name gets the names that
// there are.
source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script, const source::Sources& sources);

}  // namespace espy::cli
