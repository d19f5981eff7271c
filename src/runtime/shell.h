// Commands of the script's system().
#pragma once

#include <string>

#include "base/result.h"

namespace espy::runtime {

// Runs `command` by sh -c, waits for its end and returns what it wrote to stdout. Fails if no shell can be started; the
// command's exit status is ignored.
Result<std::string> run_shell_command(const std::string& command);

}  // namespace espy::runtime
