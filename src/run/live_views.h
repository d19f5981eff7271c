// Views of a live run: --watch in the terminal, --listen in a browser.
#pragma once

#include <memory>

#include "check/checked.h"
#include "program/program.h"
#include "run/environment.h"
#include "run/run_options.h"
#include "serve/live_server.h"
#include "watch/watch.h"

namespace espy::run {

// ---- --watch: the maps of a live run.

// Null without --watch. `sink` takes the output of the run; it and `program` must outlive the watch.
Result<std::unique_ptr<watch::Watch>> open_watch(const RunOptions& options, const check::Checked& checked,
                                                 const program::Program& program, const Environment& environment,
                                                 output::Sink& sink);

// ---- --listen: the server for a live run.

// Starts to listen, and says on stderr where. Null without --listen. `sink` takes the output of the run; the arguments,
// but `options` and `checked`, must outlive the server.
Result<std::unique_ptr<serve::LiveServer>> open_live_server(const RunOptions& options, const check::Checked& checked,
                                                            const program::Program& program,
                                                            const Environment& environment, output::Sink& sink);

}  // namespace espy::run
