// tool: executables that are espy with a script inside.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "check/checked.h"
#include "check/script_files.h"

namespace espy::tool {

// ---- Executables of espy: with a script, a tool, and without.
//
// The problem: a tool has to find its script fast and without a doubt, and espy must not spend time on a search. The
// result has to stay a regular executable, but strip(1) and objcopy(1) drop data after an ELF file, and move data in
// it.
//
// The approach: the script is an ELF section of its own, `.espy.tool`, which is not loaded, and a mark in another
// section, which is loaded, says that there is one. espy reads the mark in memory, and only a tool opens its own file.
// Building copies the executable of espy, sets the mark, and appends the section, the names of the sections and their
// table. The result depends on the executable and the script alone.

// Whether this process runs a tool.
bool runs_tool();

// Returns the bytes of the script in the running executable. Requires runs_tool().
Result<std::string> own_script();

struct Executable {
  uint16_t elf_machine = 0;           // EM_*
  std::optional<std::string> script;  // the bytes of a tool's; nullopt: it is espy without a script
};

// Describes the ELF file with these bytes. Fails if it is not an executable of espy, or one of another version.
Result<Executable> describe(std::string_view elf);

// Returns the executable of espy `elf` with a script. Fails if it is not one, or has a script already.
Result<std::string> with_script(std::string elf, std::string_view script);

// ---- A tool: an executable that is espy with a script inside.
//
// `Tool` is the script with all that it needs besides the kernel, and bytes for it. src/tool/tool.h puts the
// bytes into an executable and finds them there. What a tool does when it is started is in src/cli/tool_options.h.

// The format of the bytes, and of the options of espy that a tool accepts. From format 2 on, the first release of espy
// that reads it (base/format_version.h) must follow the number of the format in the bytes, and `has_script` in the
// mark.
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
  bool is_bundled = false;                   // it is one of those inside espy, and has no bytes
};

std::string encode(const Tool& tool);

// Fails if the bytes are not a tool of this format, or were changed.
Result<Tool> decode(std::string_view bytes);

// ---- The usage of a script, without a kernel: the first comment of a tool (tools/README.md), and the options that it
// reads.

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
