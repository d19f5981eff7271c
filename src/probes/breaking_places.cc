#include "probes/breaking_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/arch/arch.h"
#include "symbols/elf_image.h"

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

// The bytes of at most one instruction; fewer at the end of the file.
std::string code_at(const kernel::Arch& arch, const symbols::ElfFile& file, uint64_t file_offset) {
  std::string bytes;
  for (uint32_t size = arch.max_instruction_bytes; bytes.empty() && size > 0; --size)
    bytes = file.bytes_at(file_offset, size);
  return bytes;
}

std::span<const uint8_t> as_code(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

bool is_callable_nop(const kernel::Arch& arch, const symbols::ElfFile& file, uint64_t file_offset) {
  return arch.callable_nop->matches(as_code(code_at(arch, file, file_offset)));
}

bool may_have_callable_nops(const kernel::Arch& arch, const symbols::ElfFile& file) {
  return arch.callable_nop && file.machine() == arch.elf_machine && !file.go_binary();
}

// Go's functions have no red zone.
std::vector<BoundProbe*> find_in_red_zone(spec::BindRequest& request, const symbols::ElfFile& file,
                                          std::vector<BoundProbe>& probes) {
  const kernel::Arch& arch = request.kernel.arch();
  std::vector<BoundProbe*> out;
  if (!may_have_callable_nops(arch, file)) return out;
  for (BoundProbe& bound : probes)
    if (is_callable_nop(arch, file, bound.probe.address)) out.push_back(&bound);
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

// By name, because other functions have the same code: coroutines of glibc, musl and Boost, split stacks, functions of
// the loader that ask which library calls them, and unwinders, which begin where they return to.
bool uses_return_by_name(const std::string& function) {
  constexpr std::string_view kNames[] = {
      "setjmp",      "_setjmp",      "__setjmp",      "sigsetjmp",     "__sigsetjmp",    "getcontext",
      "swapcontext", "__getcontext", "__swapcontext", "jump_fcontext", "ontop_fcontext", "__morestack",
      "savectx",     "dlopen",       "dlmopen",       "dlsym",         "dlvsym",         "__dlopen",
      "__dlsym",     "backtrace",    "mcount",        "_mcount",       "__fentry__",     "unw_getcontext"};
  return std::ranges::find(kNames, function) != std::end(kNames) || function.starts_with("_Unwind_Ra") ||
         function.starts_with("_Unwind_Re") || function.starts_with("_Unwind_F") || function == "_Unwind_Backtrace";
}

// The return instruction of these leads to where another call of them began.
bool returns_elsewhere(const std::string& function) {
  constexpr std::string_view kNames[] = {"swapcontext",  "__swapcontext", "setcontext",
                                         "__setcontext", "jump_fcontext", "ontop_fcontext"};
  return std::ranges::find(kNames, function) != std::end(kNames);
}

// The kernel puts probes only into private mappings that are not writable (valid_vma in kernel/events/uprobes.c).
std::vector<BoundProbe*> find_in_writable_code(const symbols::ElfFile& file, std::vector<BoundProbe>& probes) {
  std::vector<BoundProbe*> out;
  for (BoundProbe& bound : probes) {
    const symbols::Segment* segment = file.image().segment_at_offset(bound.probe.address);
    if (segment != nullptr && segment->writable) out.push_back(&bound);
  }
  return out;
}

// Warns about probes that fire in each iteration of a string instruction. --strict refuses it (run/run_script.cc).
void warn_of_repeated(spec::BindRequest& request, const symbols::ElfFile& file, const std::vector<BoundProbe>& probes) {
  constexpr uint32_t kReadBytes = 5;  // prefixes and the opcode
  const kernel::Arch& arch = request.kernel.arch();
  if (file.machine() != arch.elf_machine) return;
  for (const BoundProbe& bound : probes) {
    if (!kernel::is_repeated(arch, as_code(file.bytes_at(bound.probe.address, kReadBytes)))) continue;
    request.diagnostics.warning(
        "counted-again", request.point.span,
        fmt::format("each iteration of the string instruction at {} counts", place_of(bound.probe)),
        "a probe at the next instruction fires once");
    return;
  }
}

std::vector<BoundProbe*> find_saved_returns(spec::BindRequest& request, const symbols::ElfFile& file,
                                            std::vector<BoundProbe>& probes,
                                            bool (*replaces_return)(const program::Probe& probe)) {
  constexpr uint32_t kReadBytes = 192;
  const kernel::Arch& arch = request.kernel.arch();
  std::vector<BoundProbe*> out;
  for (BoundProbe& bound : probes) {
    const program::Probe& probe = bound.probe;
    if (replaces_return == nullptr) continue;
    if (!replaces_return(probe)) {
      if (probe.provider == "uretprobe" && returns_elsewhere(probe.function)) out.push_back(&bound);
      continue;
    }
    std::string code;
    if (file.machine() == arch.elf_machine)
      for (uint32_t size = kReadBytes; code.empty() && size > 0; size /= 2) code = file.bytes_at(probe.address, size);
    if (uses_return_by_name(probe.function) ||
        kernel::saves_return_address(arch, {reinterpret_cast<const uint8_t*>(code.data()), code.size()}))
      out.push_back(&bound);
  }
  return out;
}

bool are_optional(const std::vector<BoundProbe>& probes) {
  return std::ranges::any_of(probes, [](const BoundProbe& each) { return each.probe.is_optional; });
}

// Why probes are refused, and what else the user can type.
struct Refusal {
  std::string place;  // of the first one
  std::string why;
  std::string hint;
  std::string_view effect = "break the program";
};

void refuse(spec::BindRequest& request, std::vector<BoundProbe>& probes, const std::vector<BoundProbe*>& refused,
            const Refusal& reason) {
  if (request.config.allow_unsafe) {
    const std::string more =
        refused.size() == 1 ? "" : fmt::format(" ({} of {} places)", refused.size(), probes.size());
    request.diagnostics.warning(
        "breaks-program", request.point.span,
        fmt::format("a probe at {} can {}: {}{}", reason.place, reason.effect, reason.why, more));
    return;
  }
  if (refused.size() == probes.size() && !are_optional(probes)) {
    request.diagnostics.error("breaks-program", request.point.span,
                              fmt::format("a probe at {} would {}: {}", reason.place, reason.effect, reason.why),
                              reason.hint);
    probes.clear();
    return;
  }
  for (BoundProbe& each : probes) each.probe.is_optional = true;
  for (BoundProbe* each : refused) each->probe.why_not = reason.why;
}

}  // namespace

uint64_t behind_nops(kernel::Kernel& kernel, const symbols::ElfFile& file, uint64_t file_offset) {
  constexpr int kMostNops = 4;
  const kernel::Arch& arch = kernel.arch();
  if (!may_have_callable_nops(arch, file)) return file_offset;
  for (int i = 0; i < kMostNops && is_callable_nop(arch, file, file_offset); ++i) {
    if (kernel.has(kernel::Feature::kUprobeKeepsStack)) break;
    file_offset += arch.instruction_length(as_code(code_at(arch, file, file_offset)));
  }
  return file_offset;
}

void move_behind_nops(const spec::BindRequest& request, const symbols::ElfFile& file, std::vector<BoundProbe>& probes) {
  if (request.is_listing() || request.config.allow_unsafe) return;
  for (BoundProbe& each : probes)
    if (each.probe.why_not.empty()) each.probe.address = behind_nops(request.kernel, file, each.probe.address);
}

void refuse_breaking(spec::BindRequest& request, const symbols::ElfFile& file, std::vector<spec::BoundProbe>& probes,
                     bool (*replaces_return)(const program::Probe& probe)) {
  if (request.is_listing() || probes.empty()) return;
  const auto all = [&] {
    std::vector<BoundProbe*> out;
    for (BoundProbe& each : probes) out.push_back(&each);
    return out;
  };
  if (file.image().dynamic_needs().has_text_relocations)
    return refuse(request, probes, all(),
                  {place_of(probes.front().probe), "the loader changes the code of this file (DT_TEXTREL)",
                   "build it with -fPIC; --unsafe attaches there"});
  if (const auto writable = find_in_writable_code(file, probes); !writable.empty())
    refuse(request, probes, writable,
           {place_of(writable.front()->probe), "the file maps its code writable, where the kernel puts no probes",
            "link it without --omagic", "never fire"});
  const auto saving =
      probes.empty() ? std::vector<BoundProbe*>() : find_saved_returns(request, file, probes, replaces_return);
  if (!saving.empty())
    refuse(request, probes, saving,
           {fmt::format("the return of `{}`", saving.front()->probe.function),
            "the function uses its return address, which the kernel replaces",
            "probe its entry; --unsafe attaches there"});
  const auto in_red_zone = probes.empty() ? std::vector<BoundProbe*>() : find_in_red_zone(request, file, probes);
  if (!in_red_zone.empty())
    refuse(request, probes, in_red_zone,
           {place_of(in_red_zone.front()->probe),
            "this kernel replaces the `nop` there by a call, which overwrites the program's stack",
            "probe another instruction, or the entry of the function; --unsafe attaches there"});
  if (!are_optional(probes)) warn_of_repeated(request, file, probes);
}

}  // namespace espy::probes
