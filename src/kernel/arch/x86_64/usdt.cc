// USDT operands in the assembler's AT&T syntax:
//   %rax               a register
//   $5                 a constant
//   -8(%rbp,%rax,4)    memory at base + index * scale + displacement, each of them optional
//   sym+4(%rip)        memory at a symbol of the file
#include <fmt/format.h>

#include "base/strings.h"
#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel::x86_64 {
namespace {

// The name in "%rax"; nullopt if `text` is no register.
std::optional<std::string> register_name(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('%')) return std::nullopt;
  return std::string(text.substr(1));
}

// "-8", "sym", "sym+4", "-4+sym", "": adds numbers to the displacement, and takes at most one symbol.
bool parse_displacement(std::string_view text, UsdtOperand& out) {
  while (!text.empty()) {
    const bool is_negative = text.starts_with('-');
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    const size_t end = text.find_first_of("+-");
    const std::string_view term = text.substr(0, end);
    text.remove_prefix(term.size());
    if (const auto number = parse_int(term)) {
      const auto displacement = static_cast<uint64_t>(out.displacement), added = static_cast<uint64_t>(*number);
      out.displacement = static_cast<int64_t>(is_negative ? displacement - added : displacement + added);
    } else if (!term.empty() && out.symbol.empty() && !is_negative && term.find_first_of("%:$ ") == term.npos) {
      out.symbol = term;
    } else {
      return false;
    }
  }
  return true;
}

// DISPLACEMENT(BASE,INDEX,SCALE), with or without the parenthesis.
bool parse_memory(std::string_view text, UsdtOperand& out) {
  out.kind = UsdtOperand::Kind::kMemory;
  const size_t open = text.find('(');
  if (!parse_displacement(text.substr(0, open), out)) return false;
  if (open == std::string_view::npos) return true;
  if (!text.ends_with(')')) return false;
  const std::vector<std::string_view> parts = split(text.substr(open + 1, text.size() - open - 2), ',');
  if (parts.size() > 3) return false;
  if (!trim(parts[0]).empty()) {
    const auto base = register_name(parts[0]);
    if (!base) return false;
    out.base = *base;
  }
  if (parts.size() > 1) {
    const auto index = register_name(parts[1]);
    if (!index) return false;
    out.index = *index;
  }
  const auto scale = parts.size() > 2 ? parse_int(trim(parts[2])) : 1;
  if (!scale || (*scale != 1 && *scale != 2 && *scale != 4 && *scale != 8)) return false;
  out.scale = static_cast<uint8_t>(*scale);
  return true;
}

}  // namespace

bool parse_usdt_operand(std::string_view operand, UsdtOperand& out) {
  if (const auto name = register_name(operand)) {
    if (name->find(':') != std::string::npos) return false;  // a segment: %fs:8
    out.kind = UsdtOperand::Kind::kRegister;
    out.base = *name;
    return true;
  }
  if (operand.starts_with('$')) {
    const auto constant = parse_int(operand.substr(1));
    if (!constant) return false;
    out.displacement = *constant;
    return true;
  }
  return parse_memory(operand, out);
}

std::string usdt_operand_with_displacement(std::string_view operand, int64_t displacement) {
  const size_t open = operand.find('(');
  return fmt::format("{}{}", displacement, open == operand.npos ? "" : operand.substr(open));
}

// "rax", "eax", "ax", "al", "ah", "r9d".
std::optional<uint32_t> usdt_register_offset(const Arch& arch, std::string_view name) {
  if (const auto whole = find_register(arch, name)) return whole->offset_bytes;
  const auto known = [&](const std::string& whole, uint32_t byte = 0) -> std::optional<uint32_t> {
    const auto found = find_register(arch, whole);
    return found ? std::optional(found->offset_bytes + byte) : std::nullopt;
  };
  const std::string text(name);
  const std::string front = text.substr(0, text.size() - 1);
  if (text.starts_with('e')) return known(text.substr(1));  // eax
  if (text.starts_with('r') && (text.ends_with('d') || text.ends_with('w') || text.ends_with('b'))) return known(front);
  if (text.size() == 3 && text.ends_with('l')) return known(front);           // sil
  if (text.size() == 2 && text.ends_with('l')) return known(front + "x");     // al
  if (text.size() == 2 && text.ends_with('h')) return known(front + "x", 1);  // ah
  return std::nullopt;
}

}  // namespace espy::kernel::x86_64
