// Which instructions the kernel's uprobes cannot handle.
#include <algorithm>
#include <iterator>

#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel::x86_64 {
namespace {

// A uprobe's instruction is executed out of line or emulated (arch/x86/kernel/uprobes.c). The kernel does neither with
// an instruction that has a lock or a segment prefix; newer kernels except a `nop` of ten bytes. After a VEX or EVEX
// prefix it takes the opcode for one of the legacy map, where the same byte means something else: if that is a jump, a
// call or a return, the traced program crashes (vpbroadcastb is taken for `jp`, vpor for `jmp`); if it is not allowed
// there, the kernel refuses.
bool is_misread_behind_vex(unsigned opcode) {
  if (opcode >= 0x70 && opcode <= 0x7f) return true;  // jcc
  constexpr unsigned kOthers[] = {0x60, 0x61, 0x62, 0x66, 0x67, 0x6c, 0x6d, 0x6e, 0x6f, 0x90, 0x9a, 0x9d, 0xc2,
                                  0xc3, 0xca, 0xcb, 0xd4, 0xd5, 0xd6, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea,
                                  0xeb, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf4, 0xfa, 0xfb, 0xff};
  return std::ranges::find(kOthers, opcode) != std::end(kOthers);
}

}  // namespace

bool can_be_stepped(std::span<const std::byte>, std::span<const std::byte> code) {
  const auto byte = [&](size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  bool has_segment = false;
  for (size_t i = 0; i < code.size(); ++i) {
    switch (byte(i)) {
      case 0xf0: return false;  // lock
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e: has_segment = true; break;  // es, cs, ss, ds
      case 0x64:
      case 0x65:
      case 0x66:
      case 0x67:
      case 0xf2:
      case 0xf3: break;  // other prefixes
      case 0xc5: return !is_misread_behind_vex(byte(i + 2));
      case 0xc4: return !is_misread_behind_vex(byte(i + 3));
      case 0x62: return !is_misread_behind_vex(byte(i + 4));
      default: return !has_segment;
    }
  }
  return true;
}

// insn_is_nop() in the kernel, with a length of five bytes. Tried on Linux 6.18 with each of these prefixes; `jmp` to
// the next instruction, and `lea` and `mov` of a register to itself, are not replaced.
bool is_nop5(std::span<const uint8_t> code) {
  constexpr uint32_t kCallBytes = 5;
  if (instruction_length(code) != kCallBytes) return false;
  const auto is_prefix = [](uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || (byte & 0xf0) == 0x40;  // REX
  };
  const auto opcode = std::ranges::find_if_not(code.first(kCallBytes), is_prefix);
  const auto rest = code.subspan(static_cast<size_t>(opcode - code.begin()));
  return rest[0] == 0x90 || (rest[0] == 0x0f && rest[1] == 0x1f);
}

bool is_nop10(std::span<const uint8_t> code) {
  constexpr uint8_t kNop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
  return code.size() >= std::size(kNop10) && std::ranges::equal(code.first(std::size(kNop10)), kNop10);
}

// branch_setup_xol_ops() and push_setup_xol_ops() in arch/x86/kernel/uprobes.c
bool is_emulated(std::span<const std::byte> code) {
  const auto byte = [&](size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  const auto is_push = [&](size_t at) { return byte(at) >= 0x50 && byte(at) <= 0x57; };
  switch (byte(0)) {
    case 0x90:                     // nop
    case 0xe8:                     // call
    case 0xe9:                     // jmp
    case 0xeb: return true;        // jmp
    case 0x41: return is_push(1);  // of a new register
    case 0x66: return byte(1) == 0x90 || (byte(1) == 0x0f && byte(2) == 0x1f);
    case 0x0f: return byte(1) == 0x1f || (byte(1) >= 0x80 && byte(1) <= 0x8f);  // long nop, jcc
    default: return is_push(0) || (byte(0) >= 0x70 && byte(0) <= 0x7f);         // jcc
  }
}

}  // namespace espy::kernel::x86_64
