// From attach points to units: which probes there are, and which of them one program serves.
#pragma once

#include "check/check.h"

namespace espy::check {

// Fills `checked.probes` and `checked.units` (contexts included) for all actions and functions of `checked.ast`.
void bind_probes(Checked& checked, CheckRequest& request);

}  // namespace espy::check
