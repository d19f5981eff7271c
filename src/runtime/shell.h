// Commands of the script's system().
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espy::runtime {

// Runs `command` by sh -c, with the environment, working directory, stdin and stderr of espy, and waits for its end.
// `on_output` takes what it writes to stdout, at its end and in pieces of a megabyte before. `ends_late`: once a second
// has passed since the end of the run was requested and the command was started, sends it SIGTERM, returns without
// waiting for it, and fails with ETIMEDOUT. Fails if no shell can be started; the command's exit status is ignored.
Status run_shell_command(const std::string& command, bool ends_late,
                         const std::function<void(std::string_view)>& on_output);

}  // namespace espy::runtime
