// Executables of espy: with a script, a tool, and without.
//
// The problem: a tool has to find its script fast and without a doubt, espy must not spend time on looking for one, and
// the result has to stay a regular executable: strip(1) and objcopy(1) drop what is appended to an ELF file, and move
// what is in it.
//
// The approach: the script is an ELF section of its own, `.espy.tool`, which is not loaded, and a mark in another
// section, which is loaded, says that there is one. espy reads the mark in memory, and only a tool opens its own file.
// Building copies the executable of espy, sets the mark, and writes the section, the names of the sections and their
// table behind the end. The result depends on the executable and the script alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espy::tool {

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

}  // namespace espy::tool
