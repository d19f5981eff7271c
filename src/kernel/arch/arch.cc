#include "kernel/arch/arch.h"

#include <algorithm>
#include <iterator>

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

// ---- Where instructions lead

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
