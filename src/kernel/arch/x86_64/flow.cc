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

}  // namespace

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
