// -i: commands over a recording.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/host.h"

namespace espy::run {

// A host whose machine is the recording of options.replay.files. Its `open` fails if the file cannot be read.
Host replay_host();

// The same for a file that is being written, and for the options of a run with --record.
struct Following {
  std::function<bool()> wait;          // recording::Reader::follow
  std::function<Status()> on_checked;  // the script can be run over the recording
  std::function<void()> on_end;        // all events were played
};
Host following_host(const Following& following);

// Diagnostics of scripts over a recording say that something was not recorded, rather than that the kernel lacks it.
source::Diagnostic as_of_recording(source::Diagnostic diagnostic);

// Prints when and where the recording was made, and how often each probe fired.
Status show_recording(const std::vector<std::string>& paths);

}  // namespace espy::run
