// --record: a run that shows what its script prints, and records what the script reads.
//
// Two processes share the work. One records the events, as `espy record --for SCRIPT` does; the other one runs the
// script over the recording while it is written, as `espy -i FILE` does afterwards. So both print the same, losses
// included, and a traced process pays for the recording alone.
#pragma once

#include "cli/command.h"

namespace espy::cli {

// Requires options.record_file. Returns the exit status; has printed all errors.
int run_recorded(const Options& options, const Host& host);

}  // namespace espy::cli
