// The variables of `config = { }` and their BPFTRACE_* names in the environment.
#pragma once

#include <string>
#include <string_view>

#include "check/check.h"

namespace espy::check {

// Reads the script's entries into `config`. What the environment has set stays.
void read_config(const syntax::Ast& ast, spec::Config& config, source::Diagnostics& diagnostics);

}  // namespace espy::check
