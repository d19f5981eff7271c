// Which instructions the kernel's uprobes cannot handle, and where instructions lead. Encodings are those of the Arm
// Architecture Reference Manual, C4.1.
#include "kernel/arch/aarch64/aarch64.h"

namespace espy::kernel::aarch64 {
namespace {

constexpr uint32_t kBytes = 4;

bool matches(uint32_t instruction, uint32_t mask, uint32_t value) { return (instruction & mask) == value; }

// A load-exclusive or store-exclusive, a load-acquire or store-release, compare and swap: the kernel takes them all for
// exclusives, which never succeed when they are stepped.
bool is_exclusive(uint32_t instruction) { return matches(instruction, 0x3f000000, 0x08000000); }

// Whether code ends between a load-exclusive and its store-exclusive. An exception there makes the store fail, and the
// program tries again for ever.
bool ends_in_exclusive_sequence(std::span<const std::byte> code) {
  for (; code.size() >= kBytes; code = code.first(code.size() - kBytes)) {
    const auto last = code.last(kBytes);
    const auto instruction = instruction_at({reinterpret_cast<const uint8_t*>(last.data()), last.size()});
    const bool is_single = matches(*instruction, 0x3fa00000, 0x08000000);  // ldxr, stxr and their like
    const bool is_pair = matches(*instruction, 0xbfa00000, 0x88200000);    // ldxp, stxp
    if (is_single || is_pair) return matches(*instruction, 0x00400000, 0x00400000);
    if (matches(*instruction, 0xfffff0ff, 0xd503305f)) return false;  // clrex
  }
  return false;
}

// `ldr` of a literal, also of a vector register, `ldrsw` and `prfm`. The kernel reads a literal without protection
// (before Linux 6.12 and its stable releases of that time), refuses it (after), and steps the load to a vector register
// in another place, where the literal is not.
bool is_literal_load(uint32_t instruction) { return matches(instruction, 0x3b000000, 0x18000000); }

// Branches are emulated, apart from those that authenticate their target.
bool is_emulated_branch(uint32_t instruction) {
  return matches(instruction, 0x7c000000, 0x14000000) ||  // b, bl
         matches(instruction, 0x7e000000, 0x34000000) ||  // cbz, cbnz
         matches(instruction, 0x7e000000, 0x36000000) ||  // tbz, tbnz
         matches(instruction, 0xff000010, 0x54000000) ||  // b.cond
         matches(instruction, 0xff9ffc1f, 0xd61f0000);    // br, blr, ret
}

// Those of the hints that are stepped; others could raise an exception (autiasp and the like) or wait.
bool is_stepped_hint(uint32_t instruction) {
  switch (instruction & 0xfe0) {
    case 0x000:  // nop
    case 0x0e0:  // xpaclri
    case 0x100:  // pacia1716
    case 0x140:  // pacib1716
    case 0x300:  // paciaz
    case 0x320:  // paciasp
    case 0x340:  // pacibz
    case 0x360:  // pacibsp
    case 0x400:  // bti
    case 0x440:  // bti c
    case 0x480:  // bti j
    case 0x4c0:  // bti jc
      return true;
    default: return false;
  }
}

}  // namespace

std::optional<uint32_t> instruction_at(std::span<const uint8_t> code) {
  if (code.size() < kBytes) return std::nullopt;
  return code[0] | uint32_t{code[1]} << 8 | uint32_t{code[2]} << 16 | uint32_t{code[3]} << 24;
}

uint32_t instruction_length(std::span<const uint8_t> code) { return code.size() < kBytes ? 0 : kBytes; }

// As arm_probe_decode_insn() and aarch64_insn_is_steppable() decide (arch/arm64/kernel/probes/decode-insn.c), which for
// kprobes alone looks for exclusive sequences.
bool can_be_stepped(std::span<const std::byte> before, std::span<const std::byte> code) {
  const auto found = instruction_at({reinterpret_cast<const uint8_t*>(code.data()), code.size()});
  if (!found) return true;
  const uint32_t instruction = *found;
  if (is_exclusive(instruction) || is_literal_load(instruction) || ends_in_exclusive_sequence(before)) return false;
  if (!matches(instruction, 0x1c000000, 0x14000000)) return true;  // not of the class of branches and system
  if (is_emulated_branch(instruction)) return true;
  if (matches(instruction, 0xfffff01f, 0xd503201f)) return is_stepped_hint(instruction);
  // Of system instructions, msr and mrs are refused, barriers and cache maintenance are stepped.
  const bool is_system = matches(instruction, 0xffc00000, 0xd5000000);
  const bool is_register_move =
      matches(instruction, 0xffd00000, 0xd5100000) || matches(instruction, 0xfff8f01f, 0xd500401f);
  return is_system && !is_register_move;
}

bool is_emulated(std::span<const std::byte> code) {
  const auto found = instruction_at({reinterpret_cast<const uint8_t*>(code.data()), code.size()});
  return found && is_emulated_branch(*found);
}

Flow flow_of(std::span<const uint8_t> before, std::span<const uint8_t> instruction) {
  using Kind = Flow::Kind;
  const auto word = instruction_at(instruction);
  if (!word) return {};
  // A number of words, with its sign, from bit `first` of the instruction.
  const auto jump = [&](uint32_t first, uint32_t bits) {
    const auto shifted = static_cast<int32_t>(*word << (32 - first - bits));
    return Flow{Kind::kJump, int64_t{shifted >> (32 - bits)} * kBytes};
  };
  if (matches(*word, 0xfc000000, 0x14000000)) return jump(0, 26);       // b
  if (matches(*word, 0xff000000, 0x54000000)) return jump(5, 19);       // b.cond
  if (matches(*word, 0x7e000000, 0x34000000)) return jump(5, 19);       // cbz, cbnz
  if (matches(*word, 0x7e000000, 0x36000000)) return jump(5, 14);       // tbz, tbnz
  if (matches(*word, 0xfefff800, 0xd61f0800)) return {Kind::kUnknown};  // braa and the like
  if (!matches(*word, 0xfffffc1f, 0xd61f0000)) return {};               // br
  // A case of a `switch`: its distance was added to an address in front of the jump.
  const auto sum = instruction_at(before);
  const bool is_add = sum && matches(*sum, 0xff000000, 0x8b000000);
  return {is_add && (*sum & 31) == (*word >> 5 & 31) ? Kind::kNext : Kind::kUnknown};
}

}  // namespace espy::kernel::aarch64
