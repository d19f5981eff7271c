// The run of `espy strace`: makes its script, starts it, and shows its records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/host.h"
#include "run/run_options.h"
#include "strace/call_decoder.h"
#include "strace/call_tracer.h"

namespace espy::strace {

struct StraceOptions {
  std::vector<std::string> expressions;  // -e
  Style style;
  LineOptions lines;
  std::optional<std::string> file;                    // -o; nullopt: standard error
  bool only_failed = false, only_successful = false;  // -Z, -z
};

// `options` has the command or the processes. Returns the exit status, of the command if there is one; has printed all
// errors.
int run_strace(const StraceOptions& wishes, const run::RunOptions& options, const run::Host& host);

}  // namespace espy::strace
