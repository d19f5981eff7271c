// The script of `espy profile`: where threads run or wait, by stack.
#pragma once

#include <cstdint>

#include "run/environment.h"
#include "trace/target_script.h"

namespace espy::trace {

struct ProfileOptions {
  uint64_t hz = 99;             // samples a second of each CPU
  bool is_off_cpu = false;      // microseconds that threads wait, instead of samples
  bool is_one_process = false;  // stacks need no name of their process
};

Result<TraceScript> write_profile_script(const ProfileOptions& options, run::Environment& environment);

}  // namespace espy::trace
