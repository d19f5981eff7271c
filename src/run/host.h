// Where a script runs: this machine, a recording, or a simulated machine in tests.
#pragma once

#include <functional>
#include <memory>

#include "program/program.h"
#include "run/environment.h"
#include "run/run_options.h"
#include "runtime/session.h"

namespace espy::run {

// Called with the loaded program; may change the options of the session that runs it.
using PrepareSession = std::function<void(const program::Program&, Environment&, runtime::SessionOptions&)>;

// Whether this machine, this user and the process of -p allow a script to run.
Status check_can_run(const RunOptions& options);

struct Host {
  std::function<Status(const RunOptions&)> check_can_run = run::check_can_run;
  std::function<Result<std::unique_ptr<Environment>>(const RunOptions&)> open = open_environment;
  PrepareSession prepare = {};
};

}  // namespace espy::run
