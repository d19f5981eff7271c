// From the text of a script to its output.
#pragma once

#include "cli/command.h"

namespace espy::cli {

// Compiles and runs the script that the options name; with --dump before `load`, only compiles it. `prepare` may be
// empty. Returns the exit status; has printed all errors.
int run_script(const Options& options, Environment& environment, const PrepareSession& prepare);

// Whether --dump ends before something is loaded, which any user may do.
bool ends_before_load(const Options& options);

}  // namespace espy::cli
