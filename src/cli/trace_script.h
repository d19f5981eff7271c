// The script that `espy trace` runs; `--dump=script` shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/environment.h"
#include "cli/options.h"

namespace espy::cli {

// How calls are shown.
struct TraceOptions : CommandOptions {
  bool is_graph = false;
  bool is_ordered = false;  // only calls within each other, in the order of the targets
  uint64_t depth = 0;       // 0: any
  uint64_t slower_than_ns = 0;
  uint64_t events = 0;  // after which it ends; 0: none
};

Result<std::string> write_trace_script(std::span<const std::string> targets, const TraceOptions& options,
                                       Environment& environment);

}  // namespace espy::cli
