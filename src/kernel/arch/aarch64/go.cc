// Code that the Go compiler generates (cmd/compile/abi-internal, cmd/internal/obj/arm64).
#include "kernel/arch/aarch64/aarch64.h"

namespace espy::kernel::aarch64 {

// The check loads the end of the stack from the goroutine, `ldr xN, [x28, #16]`, compares, and branches by `b.ls` to
// the code that grows the stack. Before that, large frames branch by `b.lo`.
uint64_t find_go_stack_check_end(std::span<const uint8_t> code) {
  constexpr uint64_t kMaxBytes = 10 * 4;
  constexpr uint32_t kLoad = 0xf9400b80, kLoadMask = 0xffffffe0, kBranchIfLowerOrSame = 0x54000009,
                     kBranchMask = 0xff00001f;
  bool has_loaded = false;
  for (uint64_t at = 0; at < kMaxBytes && at < code.size(); at += 4) {
    const auto instruction = instruction_at(code.subspan(at));
    if (!instruction) return 0;
    if (has_loaded && (*instruction & kBranchMask) == kBranchIfLowerOrSame) return at + 4;
    has_loaded |= (*instruction & kLoadMask) == kLoad;
  }
  return 0;
}

// `ret`, also of another register, and those that authenticate the address: retaa, retab.
bool is_return(std::span<const uint8_t> instruction) {
  const uint32_t word = instruction_at(instruction).value_or(0);
  return (word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff;
}

}  // namespace espy::kernel::aarch64
