// Events that happen in another task than the one they are about, which -p, --follow and --cgroup leave out.
#pragma once

#include <string>

#include "check/checked.h"
#include "source/diagnostic.h"

namespace espy::check {

// Returns "" if the filters leave out no such event that the script's probes would see, otherwise a sentence with the
// first of these probes. Call it after the script was checked.
std::string events_in_other_tasks(const Checked& checked);

// Warns of them.
void warn_of_other_tasks(const Checked& checked, source::Diagnostics& diagnostics);

}  // namespace espy::check
