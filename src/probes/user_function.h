// How functions of programs are named: by their symbols, or, in C++ and Rust, as in the source.
//
// After BINARY, an attach point has a symbol (`malloc`, `_ZN2ns1fEv`, `main.(*Store).Get`), or a name of the source
// after `cpp:` or `rust:`. Colons belong to such a name, quoted or not: `cpp:ns::f`, `cpp:"ns::f(int, long)"`. A name
// with `::` needs no prefix.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "spec/config.h"
#include "spec/provider.h"
#include "symbols/elf_file.h"

namespace espy::probes {

struct FunctionPattern {
  std::string text;         // a name or a glob
  std::string prefix = "";  // "cpp" or "rust", as given
  bool is_source_name = false;
};

// Functions that a message names: at most eight of them, and why the first one.
struct LeftOut {
  size_t count = 0;
  std::string names, first, first_reason;

  void add(const std::string& function, const std::string& why) {
    constexpr size_t kMostNames = 8;
    if (++count <= kMostNames) names += (names.empty() ? "" : ", ") + function;
    if (count == kMostNames + 1) names += ", ...";
    if (count == 1) first = function;
    if (count == 1) first_reason = why;
  }

  // "`f`" or "4 functions (f, g, h, i)"
  std::string text() const { return count == 1 ? "`" + first + "`" : fmt::format("{} functions ({})", count, names); }
  std::string reason() const { return fmt::format("of `{}`: {}", first, first_reason); }
};

// Opens a file to probe. Fails if it cannot be read as ELF, or is for a CPU that the kernel does not run programs of.
Result<std::shared_ptr<const symbols::ElfFile>> open_to_probe(const spec::BindRequest& request,
                                                              const std::string& path);

// Files by inode and device, so that a file that several processes have is probed once.
using SeenFiles = std::set<std::pair<uint64_t, uint64_t>>;
// Adds the file; returns whether it was not there.
bool is_new_file(SeenFiles& seen, const symbols::ElfFile& file);

// Calls `bind` for each process of -p, or once with nullopt without -p, and returns the probes of all. `bind` looks for
// the file as the process sees it, and skips a file unless is_new_file(). Warns of a process whose files have no such
// probe, if other processes have some. Warns of files in several containers that can be one file.
std::vector<spec::BoundProbe> bind_in_processes(
    const spec::BindRequest& request,
    const std::function<std::vector<spec::BoundProbe>(std::optional<uint32_t> pid, SeenFiles& seen)>& bind);

// Warns if the process, one of -p, does not map the file: nothing of the process would be seen.
void warn_unless_mapped(const spec::BindRequest& request, const std::string& path, const symbols::ElfFile& file,
                        std::optional<uint32_t> process);

// Returns why nothing is found in a file that was opened: it ends before its section headers; "" if it does not.
std::string why_cut_off(const symbols::ElfFile& file);
// Returns why a listing finds nothing in the file of the request: it cannot be read, or is cut off; "" if it is whole.
std::string tell_why_unreadable(spec::ListRequest& request);

// Returns nullopt if the parts do not name a function. `parts`: those after BINARY.
std::optional<FunctionPattern> parse_function_pattern(std::span<const std::string> parts);

// Returns the functions that the pattern names. A symbol that does not exist is tried as a name of the source; then
// `is_source_name` is set.
std::vector<symbols::ElfSymbol> find_user_functions(const symbols::ElfFile& file, FunctionPattern& pattern);

// The places to probe for the functions that a pattern names.
struct ProbedFunctions {
  std::vector<symbols::ElfSymbol> functions;
  std::vector<std::string> missed = {};  // clauses: what else has calls of the function, and is not probed
  std::optional<Error> error = {};       // nothing that the user means can be probed
};
// What an action reads at the probes.
struct ReadByAction {
  bool is_return = false;
  bool registers = false;  // argN, `retval`, reg(): they belong to the function in the source
};
// Replaces indirect functions by their implementations, and adds the copies that a compiler has made for some calls,
// unless what the action reads is elsewhere in them. `found`: what find_user_functions() returned.
ProbedFunctions choose_functions(const symbols::ElfFile& file, const FunctionPattern& pattern,
                                 std::vector<symbols::ElfSymbol> found, const ReadByAction& read);

// Whether two names of one address are likely to be names of one function: `malloc` and `__libc_malloc`, `open` and
// `open64`, the constructors of a class.
bool may_be_alias(const std::string& a, const std::string& b);

// Returns names of functions that a compiler has made of one that the file does not have, such as `f.constprop.0`.
std::vector<std::string> made_of(const symbols::ElfFile& file, const std::string& function);

// Returns what follows BINARY in the name of a probe: the symbol, or `cpp:"ns::f(int)"` for a name of the source.
std::string function_in_probe_name(const FunctionPattern& pattern, const std::string& symbol,
                                   const spec::Config& config);
// Returns what `func` shows: the demangled name, as in stacks, unless `cpp_demangle` is off.
std::string shown_function(const std::string& symbol, const spec::Config& config);

// Returns the function of the file that the user may have meant; "" if none is near.
std::string nearest_function(const symbols::ElfFile& file, const FunctionPattern& pattern);

// ---- Debug information for uprobe and uretprobe: arguments, variables and results as fields of the context, and
// probes at source lines.

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

// ---- The listing of uprobe and uretprobe.

// Return the functions that a pattern such as `uprobe:BINARY:FUNCTION` matches; `uprobe:BINARY@FILE:LINE`, and a single
// function where locations are shown, also lists statements. Without a binary, the program of the traced process.
std::vector<spec::ListedProbe> list_uprobes(spec::ListRequest& request);
std::vector<spec::ListedProbe> list_uretprobes(spec::ListRequest& request);

}  // namespace espy::probes
