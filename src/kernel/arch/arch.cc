#include "kernel/arch/arch.h"

#include <algorithm>

#include "kernel/arch/aarch64/aarch64.h"
#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel {

namespace {

constexpr const Arch* kArches[] = {
    &kAmd64,
    &kArm64,
};

#if defined(__x86_64__)
constexpr const Arch& kHost = kAmd64;
#elif defined(__aarch64__)
constexpr const Arch& kHost = kArm64;
#else
#error "no folder of src/kernel/arch describes this CPU"
#endif

template <class T>
const Arch* find_by(T Arch::*member, const T& value) {
  const auto found = std::ranges::find(kArches, value, [&](const Arch* arch) { return arch->*member; });
  return found == std::end(kArches) ? nullptr : *found;
}

}  // namespace

std::span<const Arch* const> all_arches() { return kArches; }

const Arch* find_arch(std::string_view name) {
  const Arch* found = find_by(&Arch::name, name);
  return found != nullptr ? found : find_by(&Arch::package_name, name);
}

const Arch* find_arch(uint16_t elf_machine) { return find_by(&Arch::elf_machine, elf_machine); }

const Arch& host_arch() { return kHost; }

std::string register_name(const Arch& arch, uint32_t offset_bytes) {
  std::string_view found;
  for (const Register& each : arch.registers)
    if (each.offset_bytes == offset_bytes && (found.empty() || each.name.size() < found.size())) found = each.name;
  return found.empty() ? "r@" + std::to_string(offset_bytes) : std::string(found);
}

std::optional<Register> find_register(const Arch& arch, std::string_view name) {
  const auto found = std::ranges::find(arch.registers, name, &Register::name);
  if (found == arch.registers.end()) return std::nullopt;
  return *found;
}

}  // namespace espy::kernel
