#include "kernel/syscalls.h"

#include <algorithm>

#include "kernel/arch/arches.h"

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

bool is_syscall_of_others(const Arch& arch, std::string_view name) {
  const auto has_it = [&](const Arch* other) { return find_syscall_number(*other, name).has_value(); };
  return !has_it(&arch) && std::ranges::any_of(all_arches(), has_it);
}

}  // namespace espy::kernel
