// What the probes of a run cost, as metrics and for the page.
#pragma once

#include <string>

#include "program/program.h"
#include "runtime/live_run.h"
#include "serve/exposition.h"

namespace espy::serve {

// Adds the families of programs, of their timing and of memory. Returns how many programs were left out.
size_t write_cost(const program::Program& program, const runtime::RunCost& cost, Exposition& out);

// The cost of late as a JSON object, with the dearest programs.
std::string cost_json(const runtime::RunCost& cost);

}  // namespace espy::serve
