// Debug information for uprobe and uretprobe: arguments, variables and results as fields of the context, and probes at
// source lines.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/provider.h"
#include "symbols/elf_file.h"

namespace espy::probes {

// The kinds of fields that an action uses.
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

// Probe::number of a uretprobe: 0, or how its returns are seen. Probe::number of a uprobe is its source line.
constexpr uint64_t kAtReturnInstruction = 1;  // the probe is there
constexpr uint64_t kStopsExceptions = 2;      // the kernel replaces the return address, which exceptions do not pass

// Returns the fields of the function that a probe is in. A probe at a line (Probe::number) is in the innermost inlined
// copy. Returns an error if there is no debug information for the address.
Result<UserFields> user_fields(const symbols::ElfFile& file, types::Types& types, const program::Probe& probe,
                               const WantedFields& wanted);
// Returns a key for the layout of the fields. Probes with equal keys can share a program.
std::string layout_key(const UserFields& fields);

// An attach point at a source line, with an optional column: uprobe:./prog@main.c:12.
struct LineTarget {
  std::string binary;  // "" if omitted
  std::string file;
  uint32_t line = 0;  // 0: all lines
  uint32_t column = 0;
};
// Returns nullopt if the parts have another form.
std::optional<LineTarget> parse_line_target(std::span<const std::string> parts);

// Returns a hint with the nearest lines that have a statement; "" if there are none.
std::string nearest_lines_hint(symbols::DebugInfo& debug, const LineTarget& place);
// Returns the source file with the most similar name; "" if there is none.
std::string most_similar_file(symbols::DebugInfo& debug, const std::string& file);

// Descriptions for -lv, as "int n: di": the variables at an address, the arguments of the function that starts at an
// address, and its result.
std::vector<std::string> describe_variables(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address, std::string_view inlined);
std::vector<std::string> describe_arguments(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address);
std::vector<std::string> describe_result(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                         uint64_t address);

}  // namespace espy::probes
