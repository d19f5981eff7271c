// Internal to the folder: aarch64's registers and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"

namespace espy::kernel {

extern const Arch kArm64;

namespace aarch64 {

// Words of struct pt_regs after x0 to x30. The first 34 words are ABI, struct user_pt_regs (asm/ptrace.h); the rest is
// the kernel's (arch/arm64/include/asm/ptrace.h).
enum Slot : uint32_t { kLink = 30, kSp, kPc, kState, kOrigX0, kSyscall, kSlots = 42 };

constexpr uint32_t kFramePointer = 29;  // of x29, in pt_regs and in DWARF

constexpr uint32_t at(uint32_t slot) { return slot * 8; }

// The 32 bits of the instruction at the start of `code`; nullopt if it is cut off.
std::optional<uint32_t> instruction_at(std::span<const uint8_t> code);

uint32_t instruction_length(std::span<const uint8_t> code);
bool can_be_stepped(std::span<const std::byte> before, std::span<const std::byte> code);
bool is_emulated(std::span<const std::byte> code);  // see flow.h
Flow flow_of(std::span<const uint8_t> before, std::span<const uint8_t> instruction);

std::vector<std::optional<types::ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                                    const std::vector<PassedValue>& arguments,
                                                                    const PassedValue& result);
ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result);

bool parse_usdt_operand(std::string_view operand, UsdtOperand& out);
std::string usdt_operand_with_displacement(std::string_view operand, int64_t displacement);
std::optional<uint32_t> usdt_register_offset(const Arch& arch, std::string_view name);

uint64_t find_go_stack_check_end(std::span<const uint8_t> code);
bool is_return(std::span<const uint8_t> instruction);

}  // namespace aarch64

}  // namespace espy::kernel
