// The script that `espy trace` runs; `--dump=script` shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/options.h"
#include "cli/trace_target.h"

namespace espy::cli {

// How calls are shown.
struct TraceOptions : CommandOptions {
  bool is_graph = false;
  bool is_ordered = false;  // only calls within each other, in the order of the targets
  uint64_t depth = 0;       // 0: any
  uint64_t slower_than_ns = 0;
  uint64_t events = 0;  // after which it ends; 0: none
};

struct TraceScript {
  // A target, and what was made of it.
  struct Part {
    TraceTarget target;
    size_t begin = 0, end = 0;           // of its actions in `text`, bytes
    std::vector<std::string> arguments;  // that can be named
  };
  std::string text;
  std::vector<Part> parts;
};

Result<TraceScript> write_trace_script(std::span<const std::string> targets, const TraceOptions& options,
                                       Environment& environment);

}  // namespace espy::cli
