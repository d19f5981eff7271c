// Code that the Go compiler generates (cmd/compile/abi-internal).
#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel::x86_64 {
namespace {

// The last four bytes of a comparison with the stack's end: [r14+16] since Go 1.17, [rcx+16] before.
bool compares_with_stack_end(std::span<const uint8_t> instruction) {
  if (instruction.size() != 4 || instruction[3] != 0x10 || instruction[1] != 0x3b) return false;
  return instruction[2] == 0x66 || instruction[2] == 0x61;
}

}  // namespace

uint64_t find_go_stack_check_end(std::span<const uint8_t> code) {
  constexpr int kMaxInstructions = 7;
  bool has_compared = false;
  uint64_t at = 0;
  for (int i = 0; i < kMaxInstructions && at < code.size(); ++i) {
    const uint32_t length = instruction_length(code.subspan(at));
    if (length == 0) return 0;
    const auto instruction = code.subspan(at, length);
    const bool is_jump = instruction[0] == 0x76 || (instruction[0] == 0x0f && instruction[1] == 0x86);  // jbe
    if (is_jump && has_compared) return at + length;
    has_compared = compares_with_stack_end(instruction);
    at += length;
  }
  return 0;
}

// `ret`, also with a prefix that some compilers put in front, and `ret N`.
bool is_return(std::span<const uint8_t> instruction) {
  if (instruction.size() == 2 && (instruction[0] == 0xf2 || instruction[0] == 0xf3))
    instruction = instruction.subspan(1);
  return instruction.size() == 1 ? instruction[0] == 0xc3 : instruction.size() == 3 && instruction[0] == 0xc2;
}

}  // namespace espy::kernel::x86_64
