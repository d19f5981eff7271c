#include <elf.h>

#include <algorithm>
#include <cstddef>

#include "kernel/arch/arch.h"

namespace espy::kernel {
namespace {

// struct pt_regs as the kernel pushes it: the order of the words is ABI (asm/ptrace.h).
enum Slot : uint32_t {
  kR15,
  kR14,
  kR13,
  kR12,
  kBp,
  kBx,
  kR11,
  kR10,
  kR9,
  kR8,
  kAx,
  kCx,
  kDx,
  kSi,
  kDi,
  kOrigAx,
  kIp,
  kCs,
  kFlags,
  kSp,
  kSs,
  kSlots
};

constexpr uint32_t at(Slot slot) { return slot * 8; }

// By the kernel's names, and by those of the processor's manual.
constexpr Register kRegisters[] = {
    {"r15", at(kR15)},        {"r14", at(kR14)},         {"r13", at(kR13)}, {"r12", at(kR12)}, {"bp", at(kBp)},
    {"bx", at(kBx)},          {"r11", at(kR11)},         {"r10", at(kR10)}, {"r9", at(kR9)},   {"r8", at(kR8)},
    {"ax", at(kAx)},          {"cx", at(kCx)},           {"dx", at(kDx)},   {"si", at(kSi)},   {"di", at(kDi)},
    {"orig_ax", at(kOrigAx)}, {"orig_rax", at(kOrigAx)}, {"ip", at(kIp)},   {"pc", at(kIp)},   {"cs", at(kCs)},
    {"flags", at(kFlags)},    {"sp", at(kSp)},           {"ss", at(kSs)},   {"rbp", at(kBp)},  {"rbx", at(kBx)},
    {"rax", at(kAx)},         {"rcx", at(kCx)},          {"rdx", at(kDx)},  {"rsi", at(kSi)},  {"rdi", at(kDi)},
    {"rip", at(kIp)},         {"eflags", at(kFlags)},    {"rsp", at(kSp)},
};

// Figure 3.36 of the System V ABI's supplement for the processor. The last one is the return address.
constexpr uint32_t kDwarf[] = {at(kAx), at(kDx),  at(kCx),  at(kBx),  at(kSi),  at(kDi),  at(kBp),  at(kSp), at(kR8),
                               at(kR9), at(kR10), at(kR11), at(kR12), at(kR13), at(kR14), at(kR15), at(kIp)};
constexpr uint32_t kArguments[] = {at(kDi), at(kSi), at(kDx), at(kCx), at(kR8), at(kR9)};
// `syscall` itself overwrites cx, so the fourth argument travels in r10.
constexpr uint32_t kSyscallArguments[] = {at(kDi), at(kSi), at(kDx), at(kR10), at(kR8), at(kR9)};

// What a uprobe replaces is executed elsewhere, out of its place, or is imitated (arch/x86/kernel/uprobes.c). The
// kernel does neither with an instruction that is locked or that names a segment, newer ones excepting the long forms
// of `nop`. Of an instruction with a VEX or EVEX prefix it takes the opcode for one of the old map, where the same byte
// means something else: where that is a jump, a call or a return, the traced program goes astray (vpbroadcastb is taken
// for `jp`, vpor for `jmp`), where it is not allowed there, the kernel refuses.
bool is_misread_behind_vex(unsigned opcode) {
  if (opcode >= 0x70 && opcode <= 0x7f) return true;  // jcc
  constexpr unsigned kOthers[] = {0x60, 0x61, 0x62, 0x66, 0x67, 0x6c, 0x6d, 0x6e, 0x6f, 0x90, 0x9a, 0x9d, 0xc2,
                                  0xc3, 0xca, 0xcb, 0xd4, 0xd5, 0xd6, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea,
                                  0xeb, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf4, 0xfa, 0xfb, 0xff};
  return std::ranges::find(kOthers, opcode) != std::end(kOthers);
}

bool can_be_stepped(std::span<const std::byte> code) {
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
      default: {
        const bool is_nop = byte(i) == 0x90 || (byte(i) == 0x0f && byte(i + 1) == 0x1f);
        return !has_segment || is_nop;
      }
    }
  }
  return true;
}

constexpr Arch kArch = {
    .name = "x86_64",
    .elf_machine = EM_X86_64,
    .source_directory = "x86",
    .library_directory = "x86_64-linux-gnu",
    .library_cache_abi = 0x0300,
    .registers = kRegisters,
    .dwarf_offsets = kDwarf,
    .argument_offsets = kArguments,
    .syscall_argument_offsets = kSyscallArguments,
    .return_value_offset = at(kAx),
    .second_return_value_offset = at(kDx),
    .stack_pointer_offset = at(kSp),
    .instruction_pointer_offset = at(kIp),
    .pt_regs_size_bytes = at(kSlots),
    .stack_argument_start_bytes = 8,  // the return address is on top
    .return_address_bytes = 8,
    .can_be_stepped = can_be_stepped,
    .instruction_length = x86_64_instruction_length,
    .compat_code_segment = 0x23,  // __USER32_CS
    .privilege_offset = at(kCs),
    .user_mode_mask = 3,  // the privilege level, in the code segment's low bits
};

}  // namespace

bool can_be_stepped(const Arch& arch, std::span<const std::byte> code) { return arch.can_be_stepped(code); }

const Arch* find_arch(std::string_view name) { return name == kArch.name ? &kArch : nullptr; }

const Arch& host_arch() { return kArch; }

std::string register_name(const Arch& arch, uint32_t offset_bytes) {
  std::string_view found;
  for (const Register& each : arch.registers)
    if (each.offset_bytes == offset_bytes && (found.empty() || each.name.size() < found.size())) found = each.name;
  return found.empty() ? "r@" + std::to_string(offset_bytes) : std::string(found);
}

std::optional<Register> find_register(const Arch& arch, std::string_view name) {
  const auto found = std::ranges::find(arch.registers, name, &Register::name);
  if (found == arch.registers.end()) return std::nullopt;
  return *found;
}

}  // namespace espy::kernel
