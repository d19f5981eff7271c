#include "kernel/abi_constants.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/arch/arch.h"

namespace espy::kernel {

namespace {

constexpr ConstantGroup kShared[] = {
#define GROUP(prefix, names) {prefix, names},
#include "kernel/abi_constants.def"
#undef GROUP
};

// Calls visit(NAME, VALUE) with the constants of a group, without its prefix, until it returns true.
template <typename Visit>
void visit_group(const ConstantGroup& group, const Visit& visit) {
  int64_t value = 0;
  for (std::string_view rest = group.names; !rest.empty();) {
    const size_t blank = rest.find(' ');
    const std::string_view word = rest.substr(0, blank);
    rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
    const size_t equals = word.find('=');
    value = equals == std::string_view::npos ? value + 1 : parse_int(word.substr(equals + 1)).value_or(0);
    if (visit(word.substr(0, equals), value)) return;
  }
}

std::optional<int64_t> find(std::span<const ConstantGroup> groups, std::string_view name) {
  std::optional<int64_t> found;
  for (const ConstantGroup& group : groups) {
    if (!name.starts_with(group.prefix)) continue;
    const std::string_view rest = name.substr(group.prefix.size());
    visit_group(group, [&](std::string_view each, int64_t value) {
      if (each == rest) found = value;
      return found.has_value();
    });
    if (found) break;
  }
  return found;
}

}  // namespace

std::optional<int64_t> abi_constant(const Arch& arch, std::string_view name) {
  if (const auto own = find(arch.abi_constants, name)) return own;
  return find(kShared, name);
}

std::vector<std::string> abi_constants(const Arch& arch) {
  std::vector<std::string> out;
  for (const std::span<const ConstantGroup> groups : {arch.abi_constants, std::span<const ConstantGroup>(kShared)}) {
    for (const ConstantGroup& group : groups) {
      visit_group(group, [&](std::string_view name, int64_t) {
        out.push_back(std::string(group.prefix) + std::string(name));
        return false;
      });
    }
  }
  return out;
}

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
