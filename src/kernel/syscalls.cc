#include "kernel/syscalls.h"

#include <algorithm>

namespace espy::kernel {

std::optional<uint32_t> find_syscall_number(const Arch& arch, std::string_view name) {
  const auto found = std::ranges::find_if(
      arch.syscalls, [&](const Syscall& call) { return call.name == name || call.tracepoint == name; });
  if (found == arch.syscalls.end()) return std::nullopt;
  return found->number;
}

std::optional<std::string_view> find_syscall_name(const Arch& arch, uint32_t number) {
  const auto found = std::ranges::lower_bound(arch.syscalls, number, {}, &Syscall::number);
  if (found == arch.syscalls.end() || found->number != number) return std::nullopt;
  return found->tracepoint;
}

}  // namespace espy::kernel
