// Where instructions lead. Encodings are those of the Intel 64 manual, volume 2.
#include <cstring>

#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel::x86_64 {
namespace {

using Kind = Flow::Kind;

constexpr uint8_t kNoTrack = 0x3e;  // of an indirect jump: its target needs no `endbr64`, as a case of a `switch`

template <typename Distance>
Flow jump(std::span<const uint8_t> instruction) {
  Distance distance = 0;
  if (instruction.size() < sizeof distance) return {};
  std::memcpy(&distance, instruction.data() + instruction.size() - sizeof distance, sizeof distance);
  return {Kind::kJump, static_cast<int64_t>(instruction.size()) + distance};
}

// Compilers read a case of a `switch` from a table: of addresses (`jmp *table(,%rax,8)`), or of distances, which they
// add to the address of the table in front of the jump (`add %rdx,%rax; jmp *%rax`).
bool is_switch(std::span<const uint8_t> before, std::span<const uint8_t> rest, bool has_rex_b) {
  const uint8_t modrm = rest[1];
  const uint8_t mode = modrm >> 6, base = modrm & 7;
  if (mode == 0 && base == 4) return rest.size() == 7 && (rest[2] & 7) == 5 && (rest[2] >> 6) == 3;
  if (mode != 3 || before.size() != 3 || (before[0] & 0xf8) != 0x48) return false;
  const bool is_to_rm = before[1] == 0x01;
  if (!is_to_rm && before[1] != 0x03) return false;
  const uint8_t sum = is_to_rm ? before[2] & 7 : (before[2] >> 3) & 7;
  const bool is_extended = (before[0] & (is_to_rm ? 1 : 4)) != 0;
  return before[2] >> 6 == 3 && sum == base && is_extended == has_rex_b;
}

// An instruction behind its prefixes.
struct Decoded {
  uint8_t opcode = 0, modrm = 0, sib = 0;
  uint8_t rex = 0;

  uint8_t mode() const { return modrm >> 6; }
  uint8_t reg() const { return static_cast<uint8_t>(((modrm >> 3) & 7) | (rex & 4) << 1); }
  bool is_memory() const { return mode() != 3; }
  bool is_at_stack_pointer() const { return is_memory() && (modrm & 7) == 4 && sib == 0x24 && (rex & 3) == 0; }
};

Decoded decode(std::span<const uint8_t> instruction) {
  Decoded out;
  size_t at = 0;
  for (; at < instruction.size(); ++at) {
    const uint8_t byte = instruction[at];
    const bool is_rex = (byte & 0xf0) == 0x40;
    if (is_rex) out.rex = byte & 0xf;
    if (!is_rex && byte != 0xf2 && byte != 0xf3 && byte != 0x66 && byte != 0x64) break;
  }
  const auto byte_at = [&](size_t offset) { return offset < instruction.size() ? instruction[offset] : uint8_t{0}; };
  out.opcode = byte_at(at);
  out.modrm = byte_at(at + 1);
  out.sib = byte_at(at + 2);
  return out;
}

// `push %rax`, or `mov %rax,(%rsp)` as in a retpoline: a `ret` behind it is a jump.
bool puts_on_stack(std::span<const uint8_t> instruction) {
  const Decoded it = decode(instruction);
  const bool is_store = it.opcode == 0x89 && it.is_at_stack_pointer() && it.mode() == 0 && (it.rex & 8) != 0;
  return is_store || (it.opcode & 0xf8) == 0x50;
}

// It moves the stack pointer, calls, or does not go on with the next instruction.
bool ends_entry(const Decoded& it) {
  const uint8_t opcode = it.opcode;
  const bool pushes = (opcode & 0xf0) == 0x50 || opcode == 0x68 || opcode == 0x6a || opcode == 0xc8;
  const bool calculates = (opcode == 0x81 || opcode == 0x83) && it.modrm == 0xec;
  const bool loads_address = opcode == 0x8d && ((it.modrm >> 3) & 7) == 4 && (it.rex & 4) == 0;
  const bool leaves =
      opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb || opcode == 0xc2 || opcode == 0xc3 || opcode == 0xff;
  return pushes || calculates || loads_address || leaves;
}

}  // namespace

bool saves_return_address(std::span<const uint8_t> code) {
  uint32_t has_address = 0;  // a bit for each register
  while (!code.empty()) {
    const uint32_t length = instruction_length(code);
    if (length == 0 || length > code.size()) return false;
    const Decoded it = decode(code.first(length));
    if (ends_entry(it)) return false;
    const bool is_load =
        it.opcode == 0x8b && it.is_at_stack_pointer() && (it.mode() == 0 || (it.mode() == 1 && code[length - 1] == 0));
    if (is_load) has_address |= 1u << it.reg();
    const bool is_store = it.opcode == 0x89 && it.is_memory() && !it.is_at_stack_pointer();
    if (is_store && (has_address >> it.reg() & 1) != 0) return true;
    if (it.opcode == 0x8b && !is_load) has_address &= ~(1u << it.reg());
    code = code.subspan(length);
  }
  return false;
}

Flow flow_of(std::span<const uint8_t> before, std::span<const uint8_t> instruction) {
  std::span<const uint8_t> rest = instruction;
  bool is_tracked = true, has_rex_b = false;
  for (; !rest.empty(); rest = rest.subspan(1)) {
    const uint8_t byte = rest[0];
    const bool is_rex = (byte & 0xf0) == 0x40;
    if (!is_rex && byte != 0xf2 && byte != 0xf3 && byte != 0x2e && byte != kNoTrack) break;
    is_tracked &= byte != kNoTrack;
    has_rex_b = is_rex && (byte & 1) != 0;
  }
  if (rest.empty()) return {};
  const uint8_t opcode = rest[0], second = rest.size() > 1 ? rest[1] : 0;
  if ((opcode & 0xf0) == 0x70) return jump<int8_t>(instruction);
  switch (opcode) {
    case 0xc2:
    case 0xc3: return {puts_on_stack(before) ? Kind::kUnknown : Kind::kNext};
    case 0xe0:  // loopne, loope, loop, jrcxz
    case 0xe1:
    case 0xe2:
    case 0xe3:
    case 0xeb: return jump<int8_t>(instruction);
    case 0xe9: return jump<int32_t>(instruction);
    case 0x0f: return (second & 0xf0) == 0x80 ? jump<int32_t>(instruction) : Flow();
    case 0xff: {
      const bool is_jump = (second & 0x30) == 0x20;
      return {is_jump && is_tracked && !is_switch(before, rest, has_rex_b) ? Kind::kUnknown : Kind::kNext};
    }
    case 0xca:  // far returns, and those of interrupts
    case 0xcb:
    case 0xcf: return {Kind::kUnknown};
    case 0x66: {  // CPUs do not agree on the size of these
      const bool leads_away = second == 0xc2 || second == 0xc3 || second == 0xe9 || second == 0xeb;
      return {leads_away ? Kind::kUnknown : Kind::kNext};
    }
    default: return {};
  }
}

}  // namespace espy::kernel::x86_64
