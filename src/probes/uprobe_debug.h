// uprobe and uretprobe with debug information: arguments, variables and results as fields of the context, and probes at
// source lines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/provider.h"
#include "symbols/elf_file.h"

namespace espy::probes {

// What an action uses.
struct WantedFields {
  bool args = false;
  bool locals = false;
  bool retval = false;
  bool any() const { return args || locals || retval; }
};

struct UserFields {
  std::vector<spec::ContextField> args;
  std::vector<spec::ContextField> locals;
  std::optional<spec::ContextField> retval;
};

// Probe::number of a uretprobe at a `ret` instruction. Of a uprobe it is the source line.
constexpr uint64_t kAtReturnInstruction = 1;

// For the function that contains the probe. A probe at a line (Probe::number) sees the innermost inlined copy. Fails if
// there is no debug information for the address.
Result<UserFields> user_fields(const symbols::ElfFile& file, types::Types& types, const program::Probe& probe,
                               const WantedFields& wanted);
// Programs can be shared by probes for which this is equal.
std::string shape_of(const UserFields& fields);

// "BINARY@FILE" and a line, perhaps a column: uprobe:./prog@main.c:12.
struct LineTarget {
  std::string binary;  // "" where the target is left out
  std::string file;
  uint32_t line = 0;  // 0: all of them
  uint32_t column = 0;
};
// nullopt if the parts have another form.
std::optional<LineTarget> parse_line_target(std::span<const std::string> parts);

// "lines 10 and 14 have", for a line without a statement; "" if no line is near.
std::string near_lines(symbols::DebugInfo& debug, const LineTarget& place);
// The source file with the nearest name; "" if there is none.
std::string near_file(symbols::DebugInfo& debug, const std::string& file);

// Lines for -lv, "int n: di": the variables that can be read at an address, and if a function starts there, its
// arguments and its result.
std::vector<std::string> describe_variables(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address, std::string_view inlined);
std::vector<std::string> describe_arguments(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address);
std::vector<std::string> describe_result(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                         uint64_t address);

}  // namespace espy::probes
