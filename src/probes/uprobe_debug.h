// What debug information adds to uprobe and uretprobe: arguments, variables and results as fields of the context, and
// probes at lines of the source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/provider.h"
#include "symbols/elf_file.h"

namespace espy::probes {

// What an action asks for.
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

// What Probe::number says of a uretprobe: that it stands on a `ret` instruction. Of a uprobe it is the source's line.
constexpr uint64_t kAtReturnInstruction = 1;

// Of the function that a probe is in. A probe at a line (Probe::number) sees the innermost inlined copy. Fails where
// there is no debug information, or none of this place.
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
// Nothing where the parts are of another form.
std::optional<LineTarget> parse_line_target(std::span<const std::string> parts);

// "lines 10 and 14 have" and the like, where a line has no statement; "" where nothing is near.
std::string near_lines(symbols::DebugInfo& debug, const LineTarget& place);
// The source file whose name is most like it; "" for none.
std::string near_file(symbols::DebugInfo& debug, const std::string& file);

// For -lv, a line each, "int n: di": what can be read at an address, what a function that begins there is given, and
// what it gives back.
std::vector<std::string> describe_variables(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address, std::string_view inlined);
std::vector<std::string> describe_arguments(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address);
std::vector<std::string> describe_result(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                         uint64_t address);

}  // namespace espy::probes
