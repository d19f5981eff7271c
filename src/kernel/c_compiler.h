// What headers say that BTF does not know, asked of the system's C compiler.
//
// In: a C text of includes and definitions. Out: its macros, the numbers that some of them stand for, and its types, as
// BTF. gcc writes BTF since version 12 (-gbtf), so no other debug information has to be read; the numbers come out of a
// data section of the object file, one 64-bit word each, so that every constant expression of C is understood.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "kernel/arch/arch.h"

namespace espy::kernel {

// An error that the compiler found.
struct CProblem {
  uint32_t line = 0;    // of the text, 1-based: where it is, or the include through which it came; 0 if unknown
  std::string where;    // "foo.h:3:5"
  std::string message;  // without "error: "
  bool is_missing_file = false;
};

class CCompiler {
 public:
  // `flags` are put in front of the compiler's own. $CC, else gcc, else cc.
  static Result<CCompiler> open(std::vector<std::string> flags);

  // All macros that `text` defines, by name, each with all that follows it: "(a,b) a+b", or " 5" where there are no
  // parameters.
  // Nothing if the text does not compile; `problems()` says why.
  using Macros = std::map<std::string, std::string, std::less<>>;
  Result<std::optional<Macros>> macros(const std::string& text);

  struct Compiled {
    std::string btf;                                      // empty if the text has no types
    std::map<std::string, int64_t, std::less<>> numbers;  // of those among `names` that are integer constants
  };
  Result<std::optional<Compiled>> compile(const std::string& text, const std::vector<std::string>& names);

  const std::vector<CProblem>& problems() const { return problems_; }

 private:
  CCompiler(std::vector<std::string> flags, ScratchDirectory scratch)
      : flags_(std::move(flags)), scratch_(std::move(scratch)) {}
  Result<ProcessOutput> run(const std::string& text, std::initializer_list<std::string> arguments);
  std::string source_path() const { return scratch_.path() + "/headers.c"; }

  std::vector<std::string> flags_;
  ScratchDirectory scratch_;
  std::vector<CProblem> problems_;
};

// The flags with which headers of the kernel itself can be read: $BPFTRACE_KERNEL_SOURCE and $BPFTRACE_KERNEL_BUILD, or
// what the distribution has installed for the running kernel. Nothing where there are no such headers.
std::optional<std::vector<std::string>> kernel_header_flags(const Arch& arch);

}  // namespace espy::kernel
