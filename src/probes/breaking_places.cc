#include "probes/breaking_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/arch/flow.h"

namespace espy::probes {
namespace {

using spec::BoundProbe;
using symbols::ElfSymbol;

// Where functions begin. A symbol can also name a label within a function, or the part of one that its compiler moved
// elsewhere: a jump leads there, and the red zone may be in use.
std::vector<uint64_t> entries_of(const symbols::ElfFile& file) {
  std::vector<ElfSymbol> functions = file.functions();
  std::ranges::sort(functions, {}, &ElfSymbol::address);
  std::vector<uint64_t> out;
  uint64_t end = 0;  // of those that begin before the current one
  uint64_t next_end = 0;
  for (size_t i = 0; i < functions.size(); ++i) {
    const ElfSymbol& each = functions[i];
    if (i == 0 || functions[i - 1].address != each.address) end = next_end;
    const bool is_part = each.name.find(".cold") != each.name.npos;
    if (each.address >= end && each.size > 0 && !is_part) out.push_back(each.address);
    next_end = std::max(next_end, each.address + each.size);
  }
  return out;
}

// Go's functions have no red zone.
std::vector<BoundProbe*> find_in_red_zone(spec::BindRequest& request, const symbols::ElfFile& file,
                                          std::vector<BoundProbe>& probes) {
  const kernel::Arch& arch = request.kernel.arch();
  std::vector<BoundProbe*> out;
  if (!arch.callable_nop || file.machine() != arch.elf_machine || file.go_binary()) return out;
  for (BoundProbe& bound : probes) {
    std::string bytes;  // fewer at the end of the file
    for (uint32_t size = arch.max_instruction_bytes; bytes.empty() && size > 0; --size)
      bytes = file.bytes_at(bound.probe.address, size);
    if (arch.callable_nop->matches({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}))
      out.push_back(&bound);
  }
  if (out.empty() || request.kernel.has(kernel::Feature::kUprobeKeepsStack)) return {};
  const std::vector<uint64_t> entries = entries_of(file);
  std::erase_if(out, [&](const BoundProbe* bound) {
    const auto address = file.address_of_offset(bound->probe.address);
    return address && std::ranges::binary_search(entries, *address);
  });
  return out;
}

// "`leaf+5`", "`calc.c:12`": what follows the file in the name of the probe.
std::string place_of(const program::Probe& probe) {
  const size_t after = probe.name.find(probe.target) + probe.target.size() + 1;
  return fmt::format("`{}`", after < probe.name.size() ? probe.name.substr(after) : probe.name);
}

// By name, as other functions have the same code: coroutines of glibc, musl and Boost, and split stacks.
bool saves_return_by_name(const std::string& function) {
  constexpr std::string_view kNames[] = {
      "setjmp",       "_setjmp",       "__setjmp",      "sigsetjmp",      "__sigsetjmp", "getcontext", "swapcontext",
      "__getcontext", "__swapcontext", "jump_fcontext", "ontop_fcontext", "__morestack", "savectx"};
  return std::ranges::find(kNames, function) != std::end(kNames);
}

std::vector<BoundProbe*> find_saved_returns(spec::BindRequest& request, const symbols::ElfFile& file,
                                            std::vector<BoundProbe>& probes,
                                            bool (*replaces_return)(const program::Probe& probe)) {
  constexpr uint32_t kReadBytes = 192;
  const kernel::Arch& arch = request.kernel.arch();
  std::vector<BoundProbe*> out;
  for (BoundProbe& bound : probes) {
    const program::Probe& probe = bound.probe;
    if (replaces_return == nullptr || !replaces_return(probe)) continue;
    std::string code;
    if (file.machine() == arch.elf_machine)
      for (uint32_t size = kReadBytes; code.empty() && size > 0; size /= 2) code = file.bytes_at(probe.address, size);
    if (saves_return_by_name(probe.function) ||
        kernel::saves_return_address(arch, {reinterpret_cast<const uint8_t*>(code.data()), code.size()}))
      out.push_back(&bound);
  }
  return out;
}

// `place` is that of the first one.
void refuse(spec::BindRequest& request, std::vector<BoundProbe>& probes, const std::vector<BoundProbe*>& breaking,
            const std::string& place, const std::string& why, const std::string& hint) {
  if (request.config.allow_unsafe) {
    const std::string more =
        breaking.size() == 1 ? "" : fmt::format(" ({} of {} places)", breaking.size(), probes.size());
    request.diagnostics.warning("breaks-program", request.point.span,
                                fmt::format("a probe at {} can break the program: {}{}", place, why, more));
    return;
  }
  const bool has_wildcard = std::ranges::any_of(probes, [](const BoundProbe& each) { return each.probe.is_optional; });
  if (breaking.size() == probes.size() && !has_wildcard) {
    request.diagnostics.error("breaks-program", request.point.span,
                              fmt::format("a probe at {} would break the program: {}", place, why), hint);
    probes.clear();
    return;
  }
  for (BoundProbe& each : probes) each.probe.is_optional = true;
  for (BoundProbe* each : breaking) each->probe.why_not = why;
}

}  // namespace

void refuse_breaking(spec::BindRequest& request, const symbols::ElfFile& file, std::vector<BoundProbe>& probes,
                     bool (*replaces_return)(const program::Probe& probe)) {
  if (request.is_listing || probes.empty()) return;
  if (const auto saving = find_saved_returns(request, file, probes, replaces_return); !saving.empty())
    refuse(request, probes, saving, fmt::format("the return of `{}`", saving.front()->probe.function),
           "the function saves its return address, which the kernel replaces",
           "probe its entry; --unsafe attaches there");
  if (const auto in_red_zone = find_in_red_zone(request, file, probes); !in_red_zone.empty())
    refuse(request, probes, in_red_zone, place_of(in_red_zone.front()->probe),
           "this kernel replaces the `nop` there by a call, which overwrites the program's stack",
           "probe another instruction, or the entry of the function; --unsafe attaches there");
}

}  // namespace espy::probes
