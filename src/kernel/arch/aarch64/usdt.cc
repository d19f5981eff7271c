// USDT operands in the assembler's syntax, as GCC and Clang write them:
//   x0, w1, sp         a register
//   5, #5              a constant
//   [x29, -8]          memory at a register and a displacement; [sp], [sp,#16]
//   [x0, x1, lsl 3]    memory at a register and another one, which may be shifted
// An operand at a symbol (`:lo12:`), or with a register that is extended (`sxtw`), is not understood.
#include <fmt/format.h>

#include "base/strings.h"
#include "kernel/arch/aarch64/aarch64.h"

namespace espy::kernel::aarch64 {
namespace {

// "5", "#5", "#-0x8".
std::optional<int64_t> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('#')) text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const auto number = parse_int(text);
  if (!number) return std::nullopt;
  return is_negative ? static_cast<int64_t>(-static_cast<uint64_t>(*number)) : *number;
}

bool is_64bit_register(std::string_view text) {
  if (text == "sp") return true;
  if (!text.starts_with('x')) return false;
  const auto number = parse_int(text.substr(1));
  return number && *number >= 0 && *number < kSp;
}

// "lsl 3", "lsl #3": the factor; nullopt for other extensions.
std::optional<uint8_t> parse_shift(std::string_view text) {
  text = trim(text);
  if (!text.starts_with("lsl")) return std::nullopt;
  const auto bits = parse_number(text.substr(3));
  if (!bits || *bits < 0 || *bits > 4) return std::nullopt;
  return static_cast<uint8_t>(1 << *bits);
}

// What is between the brackets.
bool parse_memory(std::string_view text, UsdtOperand& out) {
  out.kind = UsdtOperand::Kind::kMemory;
  const std::vector<std::string_view> parts = split(text, ',');
  if (!is_64bit_register(trim(parts[0]))) return false;
  out.base = trim(parts[0]);
  if (parts.size() == 1) return true;
  if (const auto displacement = parse_number(parts[1])) {
    out.displacement = *displacement;
    return parts.size() == 2;
  }
  if (parts.size() > 3 || !is_64bit_register(trim(parts[1]))) return false;
  out.index = trim(parts[1]);
  const auto scale = parts.size() == 3 ? parse_shift(parts[2]) : 1;
  if (!scale) return false;
  out.scale = *scale;
  return true;
}

}  // namespace

bool parse_usdt_operand(std::string_view operand, UsdtOperand& out) {
  operand = trim(operand);
  if (operand.starts_with('['))
    return operand.ends_with(']') && parse_memory(operand.substr(1, operand.size() - 2), out);
  if (const auto constant = parse_number(operand)) {
    out.displacement = *constant;
    return true;
  }
  if (operand == "xzr" || operand == "wzr") return true;  // the constant 0
  if (operand.empty() || operand.find_first_of("[], :!") != operand.npos) return false;
  out.kind = UsdtOperand::Kind::kRegister;
  out.base = operand;
  return true;
}

std::string usdt_operand_with_displacement(std::string_view operand, int64_t displacement) {
  return fmt::format("{}, {}]", operand.substr(0, operand.find_first_of(",]")), displacement);
}

// "x0", "w0", "sp".
std::optional<uint32_t> usdt_register_offset(const Arch& arch, std::string_view name) {
  const std::string whole =
      name.starts_with('w') ? name == "wsp" ? "sp" : "x" + std::string(name.substr(1)) : std::string(name);
  const auto found = find_register(arch, whole);
  return found ? std::optional(found->offset_bytes) : std::nullopt;
}

}  // namespace espy::kernel::aarch64
