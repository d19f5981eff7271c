// Binds attach points to probes, and groups the probes of an action into units, one for each program.
#pragma once

#include "check/check.h"

namespace espy::check {

// Fills `checked.probes` and `checked.units`, with contexts, for all actions and functions of `checked.ast`. Reports
// attach points that are wrong or match nothing.
void bind_probes(Checked& checked, CheckRequest& request);

}  // namespace espy::check
