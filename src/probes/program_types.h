// Types of the programs that uprobe, uretprobe and usdt are in.
#pragma once

#include "spec/provider.h"

namespace espy::probes {

// spec::Provider::find_type of these probe types: searches the debug information of Probe::target.
spec::ProgramType find_program_type(spec::ProgramTypeRequest& request);

}  // namespace espy::probes
