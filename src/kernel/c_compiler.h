// Runs the system's C compiler on headers, for macros and types that the kernel's BTF does not have.
//
// Takes C text with includes and definitions. Returns its macros, the values of macros that are integer constants, and
// its types as BTF. The compiler gcc writes BTF since version 12 (-gbtf). The values are read from a data section of
// the object file, one 64-bit word each, so all constant expressions of C are supported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "kernel/arch/arch.h"

namespace espy::kernel {

// An error message of the compiler.
struct CProblem {
  uint32_t line = 0;    // in the text, 1-based: of the error, or of the include that leads to it; 0 if unknown
  std::string where;    // "foo.h:3:5"
  std::string message;  // without "error: "
  bool is_missing_file = false;
};

class CCompiler {
 public:
  // Uses $CC, or else gcc, or else cc. `flags` precede the flags of this class. A run of the compiler may take
  // `max_seconds` (0: no limit); then the functions below fail with ETIME.
  static Result<CCompiler> open(std::vector<std::string> flags, uint64_t max_seconds);

  // Returns all macros that `text` defines: by name, the text after the name, such as "(a,b) a+b", or " 5" without
  // parameters. The result is nullopt if the text does not compile; see `problems`.
  using Macros = std::map<std::string, std::string, std::less<>>;
  Result<std::optional<Macros>> macros(const std::string& text);

  struct Compiled {
    std::string btf;                                      // empty if the text has no types
    std::map<std::string, int64_t, std::less<>> numbers;  // of those among `names` that are integer constants
  };
  // Returns the types of `text` and the values of `names`. nullopt if the text does not compile; see `problems`.
  Result<std::optional<Compiled>> compile(const std::string& text, const std::vector<std::string>& names);

  const std::vector<CProblem>& problems() const { return problems_; }
  // The last line that the last run wrote to stderr.
  const std::string& last_words() const { return last_words_; }

 private:
  CCompiler(std::vector<std::string> flags, ScratchDirectory scratch, uint64_t max_seconds)
      : flags_(std::move(flags)), scratch_(std::move(scratch)), max_seconds_(max_seconds) {}
  Status write_source(std::string_view text) const;
  Result<ProcessOutput> run(const std::string& text, std::initializer_list<std::string> arguments);
  std::string source_path() const { return scratch_.path() + "/headers.c"; }

  std::vector<std::string> flags_;
  ScratchDirectory scratch_;
  uint64_t max_seconds_;
  std::string last_words_;
  std::vector<CProblem> problems_;
};

// Returns the flags to compile headers of the kernel: those in $BPFTRACE_KERNEL_SOURCE and $BPFTRACE_KERNEL_BUILD, or
// those installed for the running kernel. nullopt if there are none.
std::optional<std::vector<std::string>> kernel_header_flags(const Arch& arch);

}  // namespace espy::kernel
