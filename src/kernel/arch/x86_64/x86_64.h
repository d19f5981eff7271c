// Internal to the folder: x86-64's registers and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"

namespace espy::kernel {

extern const Arch kAmd64;

namespace x86_64 {

// struct pt_regs; the order of its words is ABI (asm/ptrace.h).
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

// DWARF register numbers (System V ABI, AMD64 supplement, figure 3.36).
enum DwarfRegister : uint32_t { kDwarfBx = 3, kDwarfBp = 6, kDwarfSp = 7, kDwarfR12 = 12, kDwarfReturnAddress = 16 };

uint32_t instruction_length(std::span<const uint8_t> code);
bool can_be_stepped(std::span<const std::byte> before, std::span<const std::byte> code);
bool is_nop5(std::span<const uint8_t> code);
bool is_nop10(std::span<const uint8_t> code);
bool is_emulated(std::span<const std::byte> code);  // see flow.h
bool saves_return_address(std::span<const uint8_t> code);
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

}  // namespace x86_64

}  // namespace espy::kernel
