// What espy can be asked to do; each returns the exit status and has told the user all that is wrong.
#pragma once

#include "cli/options.h"

namespace espy::cli {

int run_program(const Options& options);     // the way of a script, from text to output
int list_probes(const Options& options);     // -l
int show_info(const Options& options);       // --info
int format_program(const Options& options);  // --fmt

}  // namespace espy::cli
