// USDT probes of an ELF file: where they are, and where their arguments lie.
//
// In goes a file; out come the entries of its .note.stapsdt sections, one for each place that a probe was compiled to.
// A probe in an inlined function has several. Operands are the assembler's, as the compiler left them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy::symbols {

struct UsdtLocation {
  std::string provider;
  std::string name;
  std::string arguments;               // "8@%rax -4@-1132(%rbp) 4@$5"
  uint64_t address = 0;                // virtual, as the file is linked now
  uint64_t file_offset = 0;            // of the instruction
  uint64_t semaphore_file_offset = 0;  // 0: none
};

// All of them, in the file's order; none if it has no such notes.
Result<std::vector<UsdtLocation>> read_usdt(const std::string& path);

// One argument: `SIZE@OPERAND`, a negative size for signed values, an `f` behind it for floating point.
//   %rax               a register
//   $5                 a constant
//   -8(%rbp,%rax,4)    memory at base + index * scale + displacement, each of them optional
//   sym+4(%rip)        memory at a symbol of the file
struct UsdtOperand {
  enum class Kind : uint8_t { kRegister, kConstant, kMemory };
  Kind kind = Kind::kConstant;
  uint8_t size_bytes = 8;
  bool is_signed = false;
  std::string base;  // register names without `%`; the base of memory may be ""
  std::string index;
  uint8_t scale = 1;
  std::string symbol;        // to be added to `displacement`
  int64_t displacement = 0;  // or the constant
};

// Nothing for what is understood by nobody here: segments. A vector register is one of no known name.
std::optional<UsdtOperand> parse_usdt_operand(std::string_view text);

// The arguments apart from each other. Operands may hold spaces: each begins with its size and `@`.
std::vector<std::string> split_usdt_arguments(std::string_view text);

}  // namespace espy::symbols
