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

// The kernel has no place for these (good_insns_64 in arch/x86/kernel/uprobes.c), and puts no probe there without a
// word; or it steps over them in a wrong way: `pushf` pushes the trap flag, and `syscall` returns to where it was
// copied.
bool is_unsuitable(unsigned opcode, unsigned second, bool has_operand_size) {
  constexpr unsigned kOneByte[] = {0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x6c,
                                   0x6d, 0x6e, 0x6f, 0x82, 0x9a, 0x9c, 0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5, 0xd6, 0xe4,
                                   0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb};
  constexpr unsigned kTwoBytes[] = {0x05, 0x07, 0x34, 0x35};  // syscall, sysret, sysenter, sysexit
  if (std::ranges::find(kOneByte, opcode) != std::end(kOneByte)) return true;
  if (opcode == 0x0f && std::ranges::find(kTwoBytes, second) != std::end(kTwoBytes)) return true;
  const bool is_branch = opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb || (opcode >= 0x70 && opcode <= 0x7f) ||
                         (opcode == 0x0f && second >= 0x80 && second <= 0x8f);
  return has_operand_size && is_branch;  // branch_setup_xol_ops()
}

}  // namespace

bool can_be_stepped(std::span<const std::byte>, std::span<const std::byte> code) {
  const auto byte = [&](size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  bool has_segment = false, has_operand_size = false;
  for (size_t i = 0; i < code.size(); ++i) {
    switch (byte(i)) {
      case 0xf0: return false;  // lock
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e: has_segment = true; break;  // es, cs, ss, ds
      case 0x66: has_operand_size = true; break;
      case 0x64:
      case 0x65:
      case 0x67:
      case 0xf2:
      case 0xf3: break;  // other prefixes
      case 0xc5: return !is_misread_behind_vex(byte(i + 2));
      case 0xc4: return !is_misread_behind_vex(byte(i + 3));
      case 0x62: return !is_misread_behind_vex(byte(i + 4));
      default: {
        const size_t at = (byte(i) & 0xf0) == 0x40 ? i + 1 : i;  // behind a REX prefix
        return !has_segment && !is_unsuitable(byte(at), byte(at + 1), has_operand_size);
      }
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
