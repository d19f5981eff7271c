// USDT probes of an ELF file, and the operands of their arguments.
//
// The section .note.stapsdt has a note for each place that a probe is compiled to; a probe in an inlined function has
// several. Operands are in the syntax of the assembler. Format: "UserSpaceProbeImplementation" in the SystemTap wiki.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/arch/arch.h"

namespace espy::symbols {

class ElfFile;

struct UsdtLocation {
  std::string provider;
  std::string name;
  std::string arguments;               // SIZE@OPERAND, separated by spaces
  uint64_t address = 0;                // virtual, after prelinking
  uint64_t file_offset = 0;            // of the instruction
  uint64_t semaphore_file_offset = 0;  // 0: none
};

// Returns all notes in the order of the file; empty if there are none.
std::vector<UsdtLocation> read_usdt(const ElfFile& file);

using kernel::UsdtOperand;

// Parses an argument: `SIZE@OPERAND`, with a negative size for signed values and an `f` after the size for floating
// point. Returns nullopt for operands with a segment register and for malformed ones. The register name is not
// validated.
std::optional<UsdtOperand> parse_usdt_operand(const kernel::Arch& arch, std::string_view text);

// Splits the arguments of a note. Operands can contain spaces, so an argument begins at a size and `@`.
std::vector<std::string> split_usdt_arguments(std::string_view text);

}  // namespace espy::symbols
