// What depends on the CPU: registers, calling convention, syscall arguments. One file per CPU; nothing else may assume
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace espy::kernel {

struct Register {
  std::string_view name;  // as reg("name") takes it
  uint32_t offset_bytes;  // in struct pt_regs
  uint32_t size_bytes = 8;
};

struct Arch {
  std::string_view name;                       // "x86_64"
  uint16_t elf_machine = 0;                    // EM_X86_64, ... in its files
  std::string_view source_directory;           // of its headers in the kernel's source: arch/x86
  std::string_view library_directory;          // below /lib and /usr/lib, where a system has several CPUs' libraries
  int32_t library_cache_abi = 0;               // how the loader's cache marks this CPU's libraries (glibc, ldconfig.h)
  std::span<const Register> registers;         // by every accepted name
  std::span<const uint32_t> dwarf_offsets;     // in pt_regs, of the registers by their numbers in DWARF
  std::span<const uint32_t> argument_offsets;  // in pt_regs, of function arguments passed in registers
  std::span<const uint32_t> syscall_argument_offsets;
  uint32_t return_value_offset = 0;
  uint32_t second_return_value_offset = 0;  // of values that take two registers
  uint32_t stack_pointer_offset = 0;
  uint32_t instruction_pointer_offset = 0;
  uint32_t pt_regs_size_bytes = 0;
  uint32_t stack_argument_start_bytes = 0;  // of the first stack argument, from the stack pointer at function entry
  uint32_t return_address_bytes = 0;        // that a call leaves on the stack
  bool (*can_be_stepped)(std::span<const std::byte> code) = nullptr;
  // Of the instruction that the bytes begin with; 0 where it is none, or goes on behind them.
  uint32_t (*instruction_length)(std::span<const uint8_t> bytes) = nullptr;
  uint32_t compat_code_segment = 0;  // what register cs holds in 32-bit tasks; 0: nothing tells them
  uint32_t privilege_offset = 0;     // in pt_regs, of what tells user mode: all bits of the mask are set in it
  uint32_t user_mode_mask = 0;       // 0: nothing tells it
};

// Whether the kernel's uprobes can stand on the instruction at the start of `code`, as far as its first bytes tell.
constexpr size_t kInstructionBytes = 16;  // the longest, rounded up
bool can_be_stepped(const Arch& arch, std::span<const std::byte> code);

const Arch* find_arch(std::string_view name);  // null: we do not know it
uint32_t x86_64_instruction_length(std::span<const uint8_t> bytes);
const Arch& host_arch();

// The shortest name of the register at an offset of pt_regs; its number where it has none.
std::string register_name(const Arch& arch, uint32_t offset_bytes);

std::optional<Register> find_register(const Arch& arch, std::string_view name);

}  // namespace espy::kernel
