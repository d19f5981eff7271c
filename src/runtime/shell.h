// Commands of the script's system().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espy::runtime {

struct ShellLimits {
  uint64_t seconds = 0;            // 0: none
  uint64_t output_bytes = 0;       // how much of the output is given
  bool ends_after_request = true;  // of the end of the run
};

struct ShellResult {
  bool was_cut = false;  // it wrote more than `output_bytes`
  // The command has left within the limits, or not: ETIME after the seconds; ETIMEDOUT if it ran on for a second after
  // the end of the run was requested, unless it was started later.
  Status status;
};

// Runs `command` by sh -c, with the environment, working directory, stdin and stderr of espy, and waits for its end and
// that of its output. `on_output` takes what it writes to stdout, at its end and in pieces of a megabyte before. At a
// limit of time it sends the shell SIGTERM and returns without waiting for it. Fails if no shell can be started; the
// command's exit status is ignored.
Result<ShellResult> run_shell_command(const std::string& command, const ShellLimits& limits,
                                      const std::function<void(std::string_view)>& on_output);

}  // namespace espy::runtime
