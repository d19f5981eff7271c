// Binds attach points to probes, and groups the probes of an action into units, one for each program.
#pragma once

#include <cstdint>

#include "check/check.h"

namespace espy::check {

// The type of `retval` where a wildcard matches functions of programs: that of each function; or the same for those
// that return integers, and the register as an integer for others.
enum class ResultTypes : uint8_t { kOwn, kNumbersInWildcards };

struct BindResult {
  bool has_mixed_results = false;  // functions of a wildcard, whose `retval` the action reads, return different types
  bool is_within_limits = true;    // false, after a report: more programs or probes than the config allows
};

// Fills `checked.probes` and `checked.units`, with contexts, for all actions and functions of `checked.ast`. Reports
// attach points that are wrong or match nothing, and if there are more programs or probes than the config allows.
BindResult bind_probes(Checked& checked, CheckRequest& request, ResultTypes results);

}  // namespace espy::check
