// What of espy's command line a tool has, and the reading of tools.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "tool/tool.h"

namespace espy::cli {

// The options of espy that every tool accepts.
std::vector<OptionRow> const& tool_option_rows();
// --help and --version of tools.
std::span<const Command* const> tool_commands();

// The page of --help of a tool.
std::string tool_page(const tool::Tool& tool);

// Returns the arguments for a tool that is built with these options: the options for each of its runs. Fails if there
// is one that has no meaning for a tool, or only when it is started. `own`: the rows of the command that builds.
Result<std::vector<std::string>> built_in_arguments(const Options& options, std::span<const OptionRow> own);

// Returns the script in the running executable. Requires tool::runs_tool().
Result<std::shared_ptr<const tool::Tool>> own_tool();

// Returns the options with the script in a file. For a tool, this is the script inside.
Result<Options> options_for(const Options& options, const std::string& file);

}  // namespace espy::cli
