#include "kernel/arch/emulation.h"

#include <algorithm>
#include <iterator>

#include "kernel/arch/aarch64/aarch64.h"
#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel {

namespace {

struct Row {
  const Arch* arch;
  bool (*is_emulated)(std::span<const std::byte> code);
};
constexpr Row kRows[] = {{&kAmd64, x86_64::is_emulated}, {&kArm64, aarch64::is_emulated}};

}  // namespace

bool is_emulated(const Arch& arch, std::span<const std::byte> code) {
  const auto* row = std::ranges::find(kRows, &arch, &Row::arch);
  return row != std::end(kRows) && row->is_emulated(code);
}

}  // namespace espy::kernel
