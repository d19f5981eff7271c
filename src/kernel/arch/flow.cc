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

}  // namespace espy::kernel
