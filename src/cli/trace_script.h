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
  // Conditions of the root, the first target: only the trees of calls for which all hold are shown.
  std::vector<std::string> when;
  uint64_t before = 0;  // calls of the thread that are shown before a tree

  // Whether calls are kept in the kernel until their root returns.
  bool are_trees() const { return !when.empty() || (is_graph && slower_than_ns != 0); }
};

struct TraceScript {
  // A target, and what was made of it.
  struct Part {
    TraceTarget target;
    size_t begin = 0, end = 0;           // of its actions in `text`, bytes
    std::vector<std::string> arguments;  // that can be named
    std::vector<TraceItem> conditions;   // TraceOptions::when, of the root
  };
  std::string text;
  std::vector<Part> parts;
};

// A condition of --when as the script has it; `names` are the arguments of the root.
std::string written_condition(const std::string& condition, const std::vector<std::string>& names);

Result<TraceScript> write_trace_script(std::span<const std::string> targets, const TraceOptions& options,
                                       Environment& environment);

}  // namespace espy::cli
