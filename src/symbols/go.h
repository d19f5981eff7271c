// Binaries of the Go compiler. Go has its own calling convention (registers since 1.17, the stack before), it moves
// stacks to grow them, and a function whose stack must grow runs its prologue again.
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
  std::string version;         // "go1.19.8"; "" if unknown
  bool uses_registers = true;  // for arguments and results
};

// Reads .go.buildinfo; nullopt if there is none.
std::optional<GoBinary> read_go_binary(const ElfImage& image);

// Returns the locations of arguments at the entry of a function, or of results at its return, one for each type;
// nullopt for a value in vector registers. Requires a binary that uses registers, and complete types.
std::vector<std::optional<types::ValueLocation>> go_locations(const types::Types& types, const kernel::Arch& arch,
                                                              const std::vector<types::TypeId>& values);

// Returns the offset of the first instruction after the stack check in a function's prologue; 0 if there is no check. A
// probe there fires once for each call, with all arguments still in place.
uint64_t after_stack_check(const kernel::Arch& arch, std::span<const uint8_t> code);

}  // namespace espy::symbols
