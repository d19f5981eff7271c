// What probes will cost, by how often they fire, before their actions run.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "load/hook_costs.h"
#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"

namespace espy::runtime {

// Above this share of a CPU, the user is asked or warned.
constexpr double kDearCpus = 0.1;

// Closes the gates of all programs. Requires that the program has gates, and call it before the probes are attached.
void close_gates(load::Machine& machine, const program::Program& program);

// Counts events for 20 ms, and opens the gates. If the actions will take more than kDearCpus, says so, and fails unless
// it is accepted or a user at the terminal says yes.
Status check_cost(load::Machine& machine, const program::Program& program, const load::HookCosts& hooks,
                  bool is_accepted, output::Sink& sink);

}  // namespace espy::runtime
