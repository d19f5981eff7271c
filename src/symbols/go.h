// Binaries that the Go compiler made, which go their own ways: values are passed in registers of Go's choice
// (since 1.17, on the stack before), stacks are moved to where there is room, and a function that finds no room runs
// its first instructions again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"
#include "types/type.h"
#include "types/value_location.h"

namespace espy::symbols {

class ElfImage;

struct GoBinary {
  std::string version;         // "go1.19.8"; "" where the binary does not say
  bool uses_registers = true;  // for arguments and results
};

// From .go.buildinfo; nothing for binaries of other languages.
std::optional<GoBinary> read_go_binary(const ElfImage& image);

// The register that has the address of the running goroutine's `runtime.g` in Go's functions; nothing where none has.
std::optional<kernel::Register> go_goroutine_register(const kernel::Arch& arch);

// Where the words of argN are when a function is entered: in pt_regs. Empty where they are on the stack.
std::vector<uint32_t> go_argument_offsets(const kernel::Arch& arch);

// Where arguments are at a function's entry, or results at its return, one for each type; nothing for what is in vector
// registers. The binary must use registers; types must be complete.
std::vector<std::optional<types::ValueLocation>> go_locations(const types::Types& types, const kernel::Arch& arch,
                                                              const std::vector<types::TypeId>& values);

// Behind the check of the stack's end that the function's code begins with; 0 where it has none. Whoever probes there
// sees each call once, with all arguments still in place.
uint64_t behind_stack_check(const kernel::Arch& arch, std::span<const uint8_t> code);
// The function's `ret` instructions.
std::vector<uint64_t> return_instructions(const kernel::Arch& arch, std::span<const uint8_t> code);

}  // namespace espy::symbols
