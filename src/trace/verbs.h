// The scripts of `espy count`, `latency`, `stacks` and `args`: numbers about the calls of any function.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "run/environment.h"
#include "trace/target_script.h"

namespace espy::trace {

enum class Verb : uint8_t { kCount, kLatency, kStacks, kArgs };

struct VerbOptions {
  std::string by;             // an expression of arguments that parts the numbers; empty: none
  uint64_t interval_ns = 0;   // after which the numbers are shown and begin again; 0: shown at the end
  bool kernel_stack = false;  // stacks: these, otherwise stacks of the side of the probe
  bool user_stack = false;    //
  bool is_frequency = false;  // args: counts each value, no histogram
};

// Conditions of a target choose calls: conditions on `return` when it returns, others when it begins. The sources of
// `environment` get the typed text, which the spans of the tree are in, and its diagnostics the syntax errors.
//
// A call that several targets without conditions match is counted by the first of them: named functions come before
// wildcards. TraceScript::left_out has the skipped functions with reasons.
Result<TraceScript> write_verb_script(Verb verb, std::span<const std::string> targets, const VerbOptions& options,
                                      run::Environment& environment);

}  // namespace espy::trace
