// What espy can be asked to do; each returns the exit status and has told the user all that is wrong.
#pragma once

#include <functional>
#include <memory>

#include "cli/environment.h"
#include "cli/options.h"
#include "runtime/session.h"

namespace espy::cli {

int run_program(const Options& options);     // the way of a script, from text to output
int list_probes(const Options& options);     // -l
int show_info(const Options& options);       // --info
int describe(const Options& options);        // info NAME...
int trace(const Options& options);           // trace TARGET...
int format_program(const Options& options);  // --fmt
int show_reference(const Options& options);  // --reference

// The way of a script in a given environment. `prepare` is called with the program once it is loaded, and may set what
// the session needs.
using PrepareSession = std::function<void(const program::Program&, Environment&, runtime::SessionOptions&)>;
int run_program(const Options& options, Environment& environment, const PrepareSession& prepare);
int trace(const Options& options, Environment& environment, const PrepareSession& prepare);

// What every run begins with: whether it may, and whether the process of -p is there.
Result<std::unique_ptr<Environment>> open_to_run(const Options& options);

}  // namespace espy::cli
