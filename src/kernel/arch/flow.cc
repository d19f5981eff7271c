#include "kernel/arch/flow.h"

#include <algorithm>
#include <iterator>

#include "kernel/arch/aarch64/aarch64.h"
#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel {

namespace {

struct Row {
  const Arch* arch;
  Flow (*flow_of)(std::span<const uint8_t> before, std::span<const uint8_t> instruction);
};
constexpr Row kRows[] = {{&kAmd64, x86_64::flow_of}, {&kArm64, aarch64::flow_of}};

}  // namespace

Flow flow_of(const Arch& arch, std::span<const uint8_t> before, std::span<const uint8_t> instruction) {
  const auto* row = std::ranges::find(kRows, &arch, &Row::arch);
  return row == std::end(kRows) ? Flow{Flow::Kind::kUnknown} : row->flow_of(before, instruction);
}

bool saves_return_address(const Arch& arch, std::span<const uint8_t> code) {
  return &arch == &kAmd64 && x86_64::saves_return_address(code);
}

bool is_repeated(const Arch& arch, std::span<const uint8_t> code) {
  if (&arch != &kAmd64) return false;
  bool repeats = false;
  for (const uint8_t byte : code) {
    repeats |= byte == 0xf2 || byte == 0xf3;
    const bool is_prefix = byte == 0xf2 || byte == 0xf3 || byte == 0x66 || byte == 0x67 || (byte & 0xf0) == 0x40;
    if (!is_prefix) return repeats && ((byte >= 0xa4 && byte <= 0xa7) || (byte >= 0xaa && byte <= 0xaf));
  }
  return false;
}

namespace {

struct Emulation {
  const Arch* arch;
  bool (*is_emulated)(std::span<const std::byte> code);
};
constexpr Emulation kEmulation[] = {{&kAmd64, x86_64::is_emulated}, {&kArm64, aarch64::is_emulated}};

}  // namespace

bool is_emulated(const Arch& arch, std::span<const std::byte> code) {
  const auto* row = std::ranges::find(kEmulation, &arch, &Emulation::arch);
  return row != std::end(kEmulation) && row->is_emulated(code);
}

}  // namespace espy::kernel
