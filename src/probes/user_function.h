// How functions of programs are named: by their symbols, or, in C++ and Rust, as in the source.
//
// After BINARY, an attach point has a symbol (`malloc`, `_ZN2ns1fEv`, `main.(*Store).Get`), or a name of the source
// after `cpp:` or `rust:`. Colons belong to such a name, quoted or not: `cpp:ns::f`, `cpp:"ns::f(int, long)"`. A name
// with `::` needs no prefix.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
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

// Warns if the process of -p, the only one that is traced, does not map the file: nothing would be seen.
void warn_unless_mapped(const spec::BindRequest& request, const std::string& path, const symbols::ElfFile& file);

// Returns why nothing is found in a file that was opened: it ends before its section headers; "" if it does not.
std::string why_cut_off(const symbols::ElfFile& file);
// Returns why a listing finds nothing in the file of the request: it cannot be read, or is cut off; "" if it is whole.
std::string tell_why_unreadable(spec::ListRequest& request);

// Returns nullopt if the parts do not name a function. `parts`: those after BINARY.
std::optional<FunctionPattern> parse_function_pattern(std::span<const std::string> parts);

// Returns the functions that the pattern names. A symbol that does not exist is tried as a name of the source; then
// `is_source_name` is set.
std::vector<symbols::ElfSymbol> find_user_functions(const symbols::ElfFile& file, FunctionPattern& pattern);

// What is probed for the functions that a pattern names.
struct ProbedFunctions {
  std::vector<symbols::ElfSymbol> functions;
  std::vector<std::string> missed = {};  // clauses: what else has calls of the function, and is not probed
  std::optional<Error> error = {};       // nothing that the user means can be probed
};
// What an action reads at the probes.
struct ReadByAction {
  bool is_return = false;
  bool registers = false;  // argN, `retval`, reg(): they are those of the function as it is written
};
// Puts the implementations in the place of indirect functions, and adds the copies that a compiler has made for some
// calls, unless what the action reads is elsewhere in them. `found`: what find_user_functions() returned.
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

}  // namespace espy::probes
