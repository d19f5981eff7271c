#include "probes/red_zone.h"

#include <fmt/format.h>

#include <algorithm>

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
std::vector<BoundProbe*> find_breaking(spec::BindRequest& request, const symbols::ElfFile& file,
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

}  // namespace

void refuse_in_red_zone(spec::BindRequest& request, const symbols::ElfFile& file, std::vector<BoundProbe>& probes) {
  if (request.is_listing || probes.empty()) return;
  const std::vector<BoundProbe*> breaking = find_breaking(request, file, probes);
  if (breaking.empty()) return;
  const std::string place = place_of(breaking.front()->probe);
  if (request.config.allow_unsafe) {
    request.diagnostics.warning(
        "breaks-program", request.point.span,
        breaking.size() == 1
            ? fmt::format("this kernel overwrites the program's stack at {}: its results may become wrong", place)
            : fmt::format("this kernel overwrites the program's stack at {} of {} places, among them {}: its results "
                          "may become wrong",
                          breaking.size(), probes.size(), place));
    return;
  }
  const bool has_wildcard = std::ranges::any_of(probes, [](const BoundProbe& each) { return each.probe.is_optional; });
  if (breaking.size() == probes.size() && !has_wildcard) {
    request.diagnostics.error(
        "breaks-program", request.point.span,
        fmt::format("a probe at {} would break the program: this kernel replaces the `nop` there by a call, which "
                    "overwrites the program's stack",
                    place),
        "probe another instruction, or the entry of the function; --unsafe attaches there");
    probes.clear();
    return;
  }
  for (BoundProbe& each : probes) each.probe.is_optional = true;
  for (BoundProbe* each : breaking) each->probe.why_not = "this kernel would overwrite the program's stack there";
}

}  // namespace espy::probes
