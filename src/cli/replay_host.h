// -i: commands over a recording.
#pragma once

#include "cli/command.h"

namespace espy::cli {

// A host whose machine is a recording, that of options.recordings. Its `open` fails if the file cannot be read.
Host replay_host();

// Diagnostics of scripts over a recording say that something was not recorded, rather than that the kernel lacks it.
source::Diagnostic as_of_recording(source::Diagnostic diagnostic);

// Prints when and where the recording was made, and how often each probe fired.
Status show_recording(const std::vector<std::string>& paths);

}  // namespace espy::cli
