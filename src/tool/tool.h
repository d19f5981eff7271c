// A tool: an executable that is espy with a script inside.
//
// `Tool` is the script with all that it needs besides the kernel, and bytes for it. src/tool/executable.h puts the
// bytes into an executable and finds them there. What a tool does when it is started is in src/cli/tool_options.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "check/checked.h"
#include "check/script_files.h"

namespace espy::tool {

// Of the bytes, and of the options of espy that a tool accepts.
constexpr uint32_t kFormat = 1;

struct Tool {
  std::string name;
  std::string script_name;  // for messages: the file that it was built from
  std::string script;
  check::ScriptFiles files;
  std::vector<std::string> arguments;        // options of espy that it was built with: "--format=json"
  std::vector<check::ScriptOption> options;  // by getopt()
  bool knows_all_options = false;            // false: the script could not be checked where the tool was built
  std::string cpu;                           // that its headers were compiled for; empty: it has none
  uint32_t checksum = 0;                     // of its bytes; decode() sets it
};

std::string encode(const Tool& tool);

// Fails if the bytes are not those of a tool of this format, or were changed.
Result<Tool> decode(std::string_view bytes);

}  // namespace espy::tool
