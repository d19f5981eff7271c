// --watch: what shows the maps of a run while it goes on.
#pragma once

#include <memory>

#include "check/checked.h"
#include "cli/options.h"
#include "program/program.h"
#include "watch/watch.h"

namespace espy::cli {

// Null without --watch. `sink` takes the output of the run; it and `program` must outlive the watch.
Result<std::unique_ptr<watch::Watch>> open_watch(const Options& options, const check::Checked& checked,
                                                 const program::Program& program, output::Sink& sink);

}  // namespace espy::cli
