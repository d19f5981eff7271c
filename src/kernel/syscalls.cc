#include "kernel/syscalls.h"

#include <algorithm>
#include <iterator>

namespace espy::kernel {
namespace {

struct Row {
  uint32_t number;
  std::string_view name;
  std::string_view tracepoint;
};

constexpr Row kRows[] = {
#define SYSCALL(number, name, tracepoint) {number, name, tracepoint},
#include "kernel/arch/x86_64/syscalls.def"
#undef SYSCALL
};

static_assert(std::ranges::is_sorted(kRows, {}, &Row::number));

}  // namespace

std::optional<uint32_t> find_syscall_number(std::string_view name) {
  const auto found =
      std::ranges::find_if(kRows, [&](const Row& row) { return row.name == name || row.tracepoint == name; });
  if (found == std::end(kRows)) return std::nullopt;
  return found->number;
}

std::optional<std::string_view> find_syscall_name(uint32_t number) {
  const auto found = std::ranges::lower_bound(kRows, number, {}, &Row::number);
  if (found == std::end(kRows) || found->number != number) return std::nullopt;
  return found->tracepoint;
}

}  // namespace espy::kernel
