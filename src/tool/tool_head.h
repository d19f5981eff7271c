// The usage of a script, without a kernel: the first comment of a tool (tools/README.md), and the options that it
// reads.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "check/checked.h"

namespace espy::tool {

struct ToolHead {
  std::string name;                     // "runqlat"
  std::string sentence;                 // "how long threads wait for a CPU, in microseconds."
  std::string arguments;                // of the line of usage: "[INTERVAL [COUNT]] [--failed]"
  std::vector<std::string> parameters;  // the words in capitals there, which are $1, $2, ...: "INTERVAL", "COUNT"
  std::string rest;                     // the lines except these two
};

// Returns nullopt if the script does not begin like a tool.
std::optional<ToolHead> tool_head(std::string_view script);

// Fails if there are more words than parameters, or if one must be a number and is none.
Status check_parameters(const ToolHead& head, std::span<const std::string> words);

// The options that a script asks for with getopt(), from its tree alone: no kernel is needed. A call with a default
// that is not a literal is skipped.
std::vector<check::ScriptOption> script_options(std::string_view script);

// Fails if the value does not have the type of the option's default.
Status check_value(const check::ScriptOption& option, std::string_view value);

}  // namespace espy::tool
