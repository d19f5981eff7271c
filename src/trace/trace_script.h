// trace: `espy trace`.
//
// Takes typed targets, and finds their probes and arguments (trace_target.h). It builds the script that shows their
// calls, a tree; `--dump=script` shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "run/environment.h"
#include "trace/target_script.h"

namespace espy::trace {

// How calls are shown.
struct TraceOptions {
  bool is_graph = false;
  bool is_ordered = false;       // only calls within each other, in the order of the targets
  bool shows_addresses = false;  // structs: only the address
  uint64_t depth = 0;            // 0: any
  uint64_t slower_than_ns = 0;
  uint64_t events = 0;  // after which it ends; 0: none
  // Conditions of the root, the first target: only the trees of calls for which all hold are shown.
  std::vector<std::string> when;
  uint64_t before = 0;  // calls of the thread that are shown before a tree

  // Whether calls are kept in the kernel until their root returns.
  bool are_trees() const { return !when.empty() || (is_graph && slower_than_ns != 0); }
};

// The sources of `environment` get the typed text, which the spans of the tree are in, and its diagnostics the syntax
// errors.
Result<TraceScript> write_trace_script(std::span<const std::string> targets, const TraceOptions& options,
                                       run::Environment& environment);

}  // namespace espy::trace
