// usdt: probes that are compiled into programs and libraries (<sys/sdt.h>).
//
// A USDT probe is a `nop` instruction and an ELF note with its address, the location of its arguments ("8@%rax
// -4@-1132(%rbp)"), and optionally a semaphore: a counter in the memory of the program that is not 0 while the probe is
// attached. So it is a uprobe, with a recipe for each argument. The kernel updates the semaphore, and resets it even if
// espy is killed.
//
// A probe can be at many addresses, with its arguments in other places at each. Addresses in one file with equal
// operands share a program and a link; others have separate programs. They are one probe for the user: `probe`, and
// maps with `probe` as a key, do not distinguish them (program::first_of_each_name).
//
// The operands are stored in `share`, with resolved symbols: `8@sym(%rip)` becomes the distance from the probe, because
// only the instruction pointer relates the file to its load address when the probe fires.
//
// Limits. Floating-point arguments in memory are read as integers. Arguments in vector registers, which the kernel does
// not save for probes, or in segments (%fs:8) are an error if the script uses them. Kernels without reference counters
// (before 4.20) do not support semaphores.
#include "symbols/usdt.h"

#include <fmt/format.h>

#include <cerrno>
#include <unordered_map>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/common.h"
#include "probes/program_types.h"
#include "probes/user_function.h"
#include "symbols/symbols.h"

namespace espy::probes {

extern const spec::Provider kUsdt;

namespace {

using symbols::UsdtLocation;
using symbols::UsdtOperand;

constexpr char kOperandsBegin = '\n';  // separates the path from the operands in `share`

// The file and the patterns of usdt:FILE:NAME, usdt:FILE:PROVIDER:NAME and, with -p, usdt:NAME.
struct Target {
  std::string file;
  std::string provider = "*";
  std::string name = "*";
};

std::optional<Target> parse_target(std::span<const std::string> parts, std::optional<uint32_t> pid) {
  Target out;
  if (parts.size() == 1 && pid) {
    out.name = parts[0];
  } else if (parts.size() == 2 || parts.size() == 3) {
    out.file = parts[0];
    out.name = parts.back();
    if (parts.size() == 3 && !parts[1].empty()) out.provider = parts[1];
  } else {
    return std::nullopt;
  }
  if (out.file.empty() && pid) out.file = fmt::format("/proc/{}/exe", *pid);
  return out;
}

struct Found {
  std::string path;
  std::vector<UsdtLocation> locations;
};

Result<Found> find_in(const std::string& path, const Target& target) {
  Found out{path, {}};
  for (UsdtLocation& location : TRY(symbols::read_usdt(path)))
    if (glob_match(target.provider, location.provider) && glob_match(target.name, location.name))
      out.locations.push_back(std::move(location));
  return out;
}

// Returns the probes of each file. With a wildcard, files without such a probe, and files that cannot be read any more,
// are skipped.
Result<std::vector<Found>> find(const kernel::Arch& arch, const Target& target, std::optional<uint32_t> pid) {
  std::vector<Found> out;
  if (!has_wildcard(target.file)) {
    const std::string path = TRY(symbols::resolve_library(target.file, pid, arch));
    out.push_back(TRY(find_in(path, target)));
    return out;
  }
  for (const std::string& path : symbols::find_libraries(target.file, pid))
    if (auto found = find_in(path, target); found && !found->locations.empty()) out.push_back(std::move(*found));
  return out;
}

// Returns the operands with symbols replaced by numbers; relative to the probe if the base register is the instruction
// pointer.
std::string resolved_operands(const kernel::Arch& arch, const UsdtLocation& location, const symbols::ElfFile& file) {
  std::string out;
  for (const std::string& text : symbols::split_usdt_arguments(location.arguments)) {
    const auto operand = symbols::parse_usdt_operand(arch, text);
    std::string resolved = text;
    if (operand && !operand->symbol.empty()) {
      const auto symbol = file.find_object(operand->symbol);
      const bool is_relative = arch.usdt.register_offset(arch, operand->base) == arch.instruction_pointer_offset;
      const uint64_t origin = is_relative ? location.address : 0;
      const auto distance = static_cast<int64_t>((symbol ? symbol->address : 0) - origin) + operand->displacement;
      const size_t operand_at = text.find('@') + 1;
      resolved = text.substr(0, operand_at) + arch.usdt.with_displacement(text.substr(operand_at), distance);
    }
    out += (out.empty() ? "" : " ") + resolved;
  }
  return out;
}

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  const auto target = parse_target(request.parts, request.config.pid);
  if (!target) return report_wrong_form(request, kUsdt.form, "usdt:/usr/bin/python3:function__entry");
  const auto bad_target = [&](const Error& error) {
    auto& said = error.code == ENOENT ? request.missing : request.diagnostics;
    said.error("bad-target", request.point.span, error.message, error.hint);
    return std::vector<spec::BoundProbe>{};
  };
  const auto files = find(request.kernel.arch(), *target, request.config.pid);
  if (!files) return bad_target(files.error());
  const bool is_multi = request.kernel.has(kernel::Feature::kUprobeMulti);
  const bool has_file_wildcard = has_wildcard(target->file);
  std::vector<spec::BoundProbe> out;
  for (const Found& found : *files) {
    const auto file = open_to_probe(request, found.path);
    if (!file && has_file_wildcard) continue;
    if (!file) return bad_target(file.error());
    const std::string why = found.locations.empty() ? why_cut_off(**file) : "";
    if (!why.empty()) return report_unavailable(request, "bad-target", why);
    for (const UsdtLocation& location : found.locations) {
      if (location.file_offset == 0) continue;  // no byte of the file is loaded there
      spec::BoundProbe bound;
      bound.probe.provider = kUsdt.name;
      bound.probe.target = found.path;
      bound.probe.function = location.name;
      bound.probe.name = fmt::format("usdt:{}:{}:{}", found.path, location.provider, location.name);
      bound.probe.address = location.file_offset;
      bound.probe.reference_counter = location.semaphore_file_offset;
      bound.probe.is_optional = has_file_wildcard;
      bound.probe.span = request.point.span;
      const std::string operands =
          request.uses_context ? resolved_operands(request.kernel.arch(), location, **file) : "";
      const std::string method = is_multi ? "multi/" + (has_file_wildcard && !request.uses_file ? "*" : found.path)
                                          : fmt::format("perf/{}/{:#x}", found.path, location.file_offset);
      bound.share = method + kOperandsBegin + operands;
      out.push_back(std::move(bound));
    }
  }
  return out;
}

// ---- Arguments ------------------------------------------------------------------------------------------------------

// Returns a constant truncated to its size: `1@$-56` is the unsigned byte 200.
int64_t narrowed(const UsdtOperand& operand) {
  const int unused = 64 - 8 * operand.size_bytes;
  const auto bits = static_cast<uint64_t>(operand.displacement) << unused;
  return operand.is_signed ? static_cast<int64_t>(bits) >> unused : static_cast<int64_t>(bits >> unused);
}

// Returns the recipe for an operand; nullopt if a probe cannot read it.
std::optional<spec::Recipe> recipe_of(const std::optional<UsdtOperand>& operand, const kernel::Arch& arch) {
  using Kind = spec::Recipe::Kind;
  spec::Recipe out;
  out.kind = Kind::kConstant;
  if (!operand) return std::nullopt;
  const auto base = arch.usdt.register_offset(arch, operand->base);
  const auto index = arch.usdt.register_offset(arch, operand->index);
  out.size_bytes = operand->size_bytes;
  out.is_signed = operand->is_signed;
  switch (operand->kind) {
    case UsdtOperand::Kind::kConstant: out.displacement = narrowed(*operand); break;
    case UsdtOperand::Kind::kRegister:
      if (!base) return std::nullopt;
      out.kind = Kind::kContext;
      out.offset_bytes = *base;
      break;
    case UsdtOperand::Kind::kMemory:
      if ((!operand->base.empty() && !base) || (!operand->index.empty() && !index)) return std::nullopt;
      out.kind = Kind::kUserMemory;
      out.displacement = operand->displacement;
      out.has_base = base.has_value();
      out.offset_bytes = base.value_or(0);
      out.index_offset_bytes = index.value_or(0);
      out.index_scale = index ? operand->scale : 0;
      break;
  }
  return out;
}

// Returns the operand without its size: "%xmm0" of "8f@%xmm0".
std::string_view without_size(std::string_view operand) { return operand.substr(operand.find('@') + 1); }

spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out = uprobe_context(request, false);
  out.arguments.clear();
  const kernel::Arch& arch = request.kernel.arch();
  const std::string_view operands = request.share.substr(request.share.find(kOperandsBegin) + 1);
  for (const std::string& text : symbols::split_usdt_arguments(operands)) {
    const auto recipe = recipe_of(symbols::parse_usdt_operand(arch, text), arch);
    const types::TypeId type = recipe && recipe->is_signed ? request.types.int64() : request.types.uint64();
    spec::ContextField field{fmt::format("arg{}", out.arguments.size()), type, recipe.value_or(spec::Recipe{})};
    if (!recipe) {
      field.unreadable = fmt::format("`{}` is in `{}`, which probes cannot read", field.name, without_size(text));
      field.hint = "the kernel does not give probes access to vector registers and segments";
    }
    out.arguments.push_back(std::move(field));
  }
  return out;
}

Status attach(spec::AttachRequest& request) { return attach_uprobes(request, request.probes, false); }

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  Target target;
  if (request.parts.size() == 1) {
    target.file = request.parts[0];
  } else if (const auto parsed = parse_target(request.parts, request.config.pid)) {
    target = *parsed;
  }
  if (target.file.empty() && request.config.pid) target.file = fmt::format("/proc/{}/exe", *request.config.pid);
  const auto files = find(request.kernel.arch(), target, request.config.pid);
  if (!files) return {};
  std::vector<spec::ListedProbe> out;
  for (const Found& found : *files) {
    std::unordered_map<std::string, size_t> places;  // in `out`
    for (const UsdtLocation& location : found.locations) {
      const std::string name = fmt::format("usdt:{}:{}:{}", found.path, location.provider, location.name);
      const auto [place, is_new] = places.try_emplace(name, out.size());
      if (is_new) out.push_back({name, {}});
      if (!request.verbose) continue;
      const std::string counter = location.semaphore_file_offset == 0 ? "" : " with a semaphore";
      out[place->second].arguments.push_back(
          fmt::format("at {:#x}{}: {}", location.address, counter, location.arguments));
    }
  }
  return out;
}

}  // namespace

extern const spec::Provider kUsdt = {
    .name = "usdt",
    .aliases = {"U"},
    .doc =
        "Fires at a probe that is compiled into a program or library. Arguments are arg0, arg1, ...; its semaphore is "
        "incremented while the probe is attached. `-lv` lists addresses and operands. BINARY may be a pattern: `*` "
        "matches the files that processes run or, with `-p`, those of that process.",
    .form = "usdt:BINARY:NAME or usdt:BINARY:PROVIDER:NAME",
    .bind = bind,
    .context = context,
    .attach = attach,
    .list = list,
    .tell_similar = tell_why_unreadable,
    .find_type = find_program_type,
    .needs_target_to_list = true,
    .example = "usdt:libc:setjmp { @[comm] = count(); }"};

}  // namespace espy::probes
