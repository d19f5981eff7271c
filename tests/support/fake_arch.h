// A CPU that does not exist and has little in common with x86-64: calls leave the return address in a link register,
// pages have 16 KiB, stores are not ordered, and registers, pt_regs, USDT operands and Go's convention are its own.
#pragma once

#include <array>

#include "base/strings.h"
#include "kernel/arch/arch.h"

namespace espy::testing {

namespace fake {

constexpr uint32_t kA0 = 16, kA1 = 24, kA2 = 32, kFp = 248, kLink = 256, kSp = 264, kPc = 272, kCall = 280,
                   kState = 288;

inline constexpr kernel::Register kRegisters[] = {{"a0", kA0},     {"a1", kA1},    {"a2", kA2}, {"frame", kFp},
                                                  {"link", kLink}, {"stack", kSp}, {"pc", kPc}, {"state", kState}};
inline constexpr uint32_t kArguments[] = {kA0, kA1};
inline constexpr uint32_t kSyscallArguments[] = {kA1, kA2, kA0};
inline constexpr uint32_t kGoArguments[] = {kA2, kA1, kA0};
inline constexpr std::array<uint32_t, 32> kDwarf = [] {
  std::array<uint32_t, 32> out = {};
  out[0] = kA0;
  out[1] = kA1;
  out[2] = kA2;
  out[29] = kFp;
  out[30] = kLink;
  out[31] = kSp;
  return out;
}();
inline constexpr uint64_t kCalleeSaved[] = {29};
inline constexpr std::string_view kThreadPointer[] = {"files", "f_pos"};
inline constexpr kernel::Syscall kSyscalls[] = {{3, "look", "newlook"}, {7, "write", "write"}};
inline constexpr kernel::ConstantGroup kConstants[] = {{"", "EPERM=77 ENOENT EBELL=0x50"}, {"O_", "DIRECT=5"}};

// "a0", "#5", "[stack,16]".
inline bool parse_operand(std::string_view text, kernel::UsdtOperand& out) {
  using Kind = kernel::UsdtOperand::Kind;
  if (text.starts_with('#')) {
    out.displacement = parse_int(text.substr(1)).value_or(0);
    return true;
  }
  if (!text.starts_with('[')) {
    out.kind = Kind::kRegister;
    out.base = text;
    return !text.empty();
  }
  out.kind = Kind::kMemory;
  const auto parts = split(text.substr(1, text.size() - 2), ',');
  out.base = parts[0];
  if (parts.size() > 1) out.displacement = parse_int(parts[1]).value_or(0);
  return true;
}

inline std::string with_displacement(std::string_view text, int64_t displacement) {
  return std::string(text.substr(0, text.find(','))) + "," + std::to_string(displacement) + "]";
}

inline std::optional<uint32_t> register_offset(const kernel::Arch& arch, std::string_view name) {
  const auto found = kernel::find_register(arch, name);
  return found ? std::optional(found->offset_bytes) : std::nullopt;
}

// Instructions have four bytes; 0xee begins a return.
inline uint32_t instruction_length(std::span<const uint8_t> code) { return code.size() < 4 ? 0 : 4; }
inline bool is_return(std::span<const uint8_t> instruction) { return instruction[0] == 0xee; }
inline bool can_be_stepped(std::span<const std::byte>, std::span<const std::byte> code) {
  return code[0] != std::byte{0xff};
}
inline uint64_t find_stack_check_end(std::span<const uint8_t>) { return 12; }

// Variant I: a header of 16 bytes, then the executable's variables.
inline int64_t thread_local_start(uint64_t, uint64_t align_bytes) {
  return static_cast<int64_t>((16 + align_bytes - 1) / align_bytes * align_bytes);
}

}  // namespace fake

inline constexpr kernel::Arch kFakeArch = {
    .name = "fake",
    .elf_machine = 0x7fe5,
    .source_directory = "fake",
    .library_directory = "fake-linux-gnu",
    .library_cache_abi = 0x7f00,
    .page_size_bytes = 16 * 1024,
    .has_ordered_stores = false,
    .registers = fake::kRegisters,
    .pt_regs_size_bytes = 296,
    .stack_pointer_offset = fake::kSp,
    .frame_pointer_offset = fake::kFp,
    .instruction_pointer_offset = fake::kPc,
    .thread_pointer = fake::kThreadPointer,
    .syscalls = fake::kSyscalls,
    .syscall_number_offset = fake::kCall,
    .syscall_argument_offsets = fake::kSyscallArguments,
    .abi_constants = fake::kConstants,
    .argument_offsets = fake::kArguments,
    .return_value_offset = fake::kA0,
    .second_return_value_offset = fake::kA1,
    .link_register_offset = fake::kLink,
    .dwarf_offsets = fake::kDwarf,
    .callee_saved = fake::kCalleeSaved,
    .thread_local_start = fake::thread_local_start,
    .unwind = {.stack_pointer = 31, .frame_pointer = 29, .return_address = 30},
    .signal_trampoline = "__fake_sigreturn",
    .max_instruction_bytes = 4,
    .can_be_stepped = fake::can_be_stepped,
    .instruction_length = fake::instruction_length,
    .usdt = {.parse = fake::parse_operand,
             .with_displacement = fake::with_displacement,
             .register_offset = fake::register_offset},
    .go = {.argument_offsets = fake::kGoArguments,
           .vector_register_count = 1,
           .goroutine = kernel::Register{"frame", fake::kFp},
           .find_stack_check_end = fake::find_stack_check_end,
           .is_return = fake::is_return},
};

}  // namespace espy::testing
