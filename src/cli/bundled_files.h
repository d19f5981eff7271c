// Files that are part of espy: the tools, the tutorial, and the page of diagnostics. CMake compresses them into the
// binary (cmake/bundle.cmake); each is decompressed when it is first asked for.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tool/tool.h"

namespace espy::cli {

// Returns the text of a file by its path in the source, such as "docs/start/tutorial.md"; "" if it is not bundled.
std::string_view bundled_file(std::string_view path);

// A line of tools/topics.
struct BundledTool {
  std::string_view name, topic, summary;
};

std::span<const BundledTool> bundled_tools();  // sorted by name

// Returns the script; "" if there is no tool of this name.
std::string_view bundled_script(std::string_view name);

// Returns the tool with that script; null if there is none. `-c` limits its probes to the command.
std::shared_ptr<const tool::Tool> bundled_tool(std::string_view name);

}  // namespace espy::cli
