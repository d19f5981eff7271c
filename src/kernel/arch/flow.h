// Where instructions lead, for readers of the code of functions. Arch knows whether an instruction returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/arch/arch.h"

namespace espy::kernel {

struct Flow {
  enum class Kind : uint8_t {
    kNext,     // to the next instruction, to a call that comes back to it, or to a case of a `switch`; or it returns
    kJump,     // `distance` away, or, of a condition, to the next one
    kUnknown,  // to an address in a register or in memory, of another function or within this one
  } kind = Kind::kNext;
  int64_t distance = 0;  // from the start of the instruction, bytes
};

// Whether a function stores its return address outside of the stack, as setjmp(3) does, before it moves the stack
// pointer, calls or jumps away. `code`: from its first instruction. False except for x86-64.
bool saves_return_address(const Arch& arch, std::span<const uint8_t> code);

// Whether it is a string instruction of x86-64 with a repeat prefix: each iteration fires a probe on it. `code`: from
// its first byte.
bool is_repeated(const Arch& arch, std::span<const uint8_t> code);

// `before`: the instruction in front, or empty. Both have their whole length, Arch::instruction_length. kUnknown for an
// unknown CPU.
Flow flow_of(const Arch& arch, std::span<const uint8_t> before, std::span<const uint8_t> instruction);

// ---- Instructions that the kernel's uprobes emulate. They execute others out of their place, by a single step, which
// takes a second exception: on virtual machines tens of microseconds.

// As far as the first bytes show.
bool is_emulated(const Arch& arch, std::span<const std::byte> code);

}  // namespace espy::kernel
