// Operands of USDT probes, which are in the syntax of the CPU's assembler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espy::kernel {

struct Arch;

struct UsdtOperand {
  enum class Kind : uint8_t { kRegister, kConstant, kMemory };
  Kind kind = Kind::kConstant;
  uint8_t size_bytes = 8;
  bool is_signed = false;
  std::string base;   // a register by its assembler name; empty if memory has no base
  std::string index;  // empty if none
  uint8_t scale = 1;
  std::string symbol;        // whose address is added to `displacement`; empty if none
  int64_t displacement = 0;  // or the constant
};

struct UsdtSyntax {
  // Parses an operand without its size ("SIZE@") into `out`; false if it is not understood.
  bool (*parse)(std::string_view operand, UsdtOperand& out) = nullptr;
  // The operand with a number in place of its symbol and displacement.
  std::string (*with_displacement)(std::string_view operand, int64_t displacement) = nullptr;
  // Offset in struct pt_regs of a register, or of a part of one, by its assembler name.
  std::optional<uint32_t> (*register_offset)(const Arch& arch, std::string_view name) = nullptr;
};

}  // namespace espy::kernel
