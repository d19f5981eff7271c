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
// The operands are the layout of `share`, with resolved symbols: `8@sym(%rip)` becomes the distance from the probe,
// because only the instruction pointer relates the file to its load address when the probe fires. Operands name
// variables as the compiler does: also `static` ones, which several source files may have, and which a stripped file
// does not name.
//
// Limits. Floating-point arguments in memory are read as integers. Arguments in vector registers, which the kernel does
// not save for probes, or in segments (%fs:8) are an error if the script uses them. Kernels without reference counters
// (before 4.20) do not support semaphores.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/breaking_places.h"
#include "probes/probe_support.h"
#include "probes/user_function.h"
#include "symbols/elf_file.h"
#include "symbols/symbols.h"

namespace espy::probes {

extern const spec::Provider kUsdt;

namespace {

using symbols::UsdtLocation;
using symbols::UsdtOperand;

constexpr char kUnresolved = '!';  // begins an operand whose symbol is not known

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
  std::shared_ptr<const symbols::ElfFile> file;
  std::vector<UsdtLocation> locations;
};

Result<Found> find_in(symbols::Symbolizer& symbols, const std::string& path, const Target& target) {
  Found out{path, TRY(symbols.elf_file(path)), {}};
  // Where a linker keeps one of several functions with the same code, their probes are at one place.
  std::set<std::tuple<std::string, std::string, uint64_t>> seen;
  for (UsdtLocation& location : symbols::read_usdt(*out.file))
    if (glob_match(target.provider, location.provider) && glob_match(target.name, location.name) &&
        seen.emplace(location.provider, location.name, location.address).second)
      out.locations.push_back(std::move(location));
  return out;
}

// Returns the probes of each file. With a wildcard, files without such a probe, and files that cannot be read any more,
// are skipped.
Result<std::vector<Found>> find(symbols::Symbolizer& symbols, const kernel::Arch& arch, const Target& target,
                                std::optional<uint32_t> pid) {
  std::vector<Found> out;
  if (!has_wildcard(target.file)) {
    const std::string path = TRY(symbols::resolve_library(target.file, pid, arch));
    out.push_back(TRY(find_in(symbols, path, target)));
    return out;
  }
  for (const std::string& path : symbols::find_libraries(target.file, pid))
    if (auto found = find_in(symbols, path, target); found && !found->locations.empty())
      out.push_back(std::move(*found));
  return out;
}

// The variables that operands name. The notes of a file can name thousands: its symbols are read once.
class Variables {
 public:
  Variables(const kernel::Arch& arch, const std::vector<UsdtLocation>& locations, const symbols::ElfFile& file)
      : arch_(arch) {
    std::set<std::string, std::less<>> names;
    for (const UsdtLocation& location : locations)
      for (const std::string& text : symbols::split_usdt_arguments(location.arguments))
        if (const auto operand = symbols::parse_usdt_operand(arch, text); operand && !operand->symbol.empty())
          names.insert(operand->symbol);
    if (!names.empty()) addresses_ = file.object_addresses(names);
  }

  // Returns an operand with a number in place of its symbol, relative to the probe if the base register is the
  // instruction pointer; SIZE@!COUNT:SYMBOL if the file has no such variable, or several.
  std::string resolved(const std::string& text, const UsdtLocation& location) const {
    const auto operand = symbols::parse_usdt_operand(arch_, text);
    if (!operand || operand->symbol.empty()) return text;
    const auto found = addresses_.find(operand->symbol);
    const size_t count = found == addresses_.end() ? 0 : found->second.size();
    const size_t operand_at = text.find('@') + 1;
    if (count != 1) return fmt::format("{}{}{}:{}", text.substr(0, operand_at), kUnresolved, count, operand->symbol);
    const bool is_relative = arch_.usdt.register_offset(arch_, operand->base) == arch_.instruction_pointer_offset;
    const uint64_t address = *found->second.begin() + static_cast<uint64_t>(operand->displacement);
    const auto distance = static_cast<int64_t>(address - (is_relative ? location.address : 0));
    return text.substr(0, operand_at) + arch_.usdt.with_displacement(text.substr(operand_at), distance);
  }

 private:
  const kernel::Arch& arch_;
  std::map<std::string, std::set<uint64_t>> addresses_;
};

// Why the operand SIZE@!COUNT:SYMBOL cannot be read, as a clause; "" for other operands.
std::string why_unresolved(std::string_view operand) {
  operand.remove_prefix(operand.find('@') + 1);
  if (!operand.starts_with(kUnresolved)) return "";
  const size_t colon = std::min(operand.find(':'), operand.size() - 1);
  const std::string_view count = operand.substr(1, colon - 1), symbol = operand.substr(colon + 1);
  if (count == "0") return fmt::format("the file has no symbol `{}`", symbol);
  return fmt::format("{} variables of the file are named `{}`", count, symbol);
}

std::string_view hint_of(std::string_view why_unresolved) {
  if (why_unresolved.find("`.L") != why_unresolved.npos) return "assemblers drop the names that begin with `.L`";
  if (why_unresolved.starts_with("the")) return "a file that is not stripped, or its debug package, has it";
  return "the operand of the probe does not say which of them it means";
}

std::string resolved_operands(const Variables& variables, const UsdtLocation& location) {
  std::string out;
  for (const std::string& text : symbols::split_usdt_arguments(location.arguments))
    out += (out.empty() ? "" : " ") + variables.resolved(text, location);
  return out;
}

std::vector<spec::BoundProbe> bind_names(spec::BindRequest& request, std::optional<uint32_t> pid, SeenFiles& seen) {
  const auto target = parse_target(request.parts, pid);
  if (!target) return report_wrong_form(request, kUsdt.form, "usdt:/usr/bin/python3:function__entry");
  const auto bad_target = [&](const Error& error) {
    auto& said = error.code == ENOENT ? request.missing : request.diagnostics;
    said.error("bad-target", request.point.span, error.message, error.hint);
    return std::vector<spec::BoundProbe>{};
  };
  if (request.symbols == nullptr) return {};
  const auto files = find(*request.symbols, request.kernel.arch(), *target, pid);
  if (!files) return bad_target(files.error());
  if (!request.is_listing() && report_shared_frames(request)) return {};
  const bool has_file_wildcard = has_wildcard(target->file);
  std::vector<spec::BoundProbe> out;
  for (const Found& found : *files) {
    const auto can_be_probed = open_to_probe(request, found.path);
    if (!can_be_probed && has_file_wildcard) continue;
    if (!can_be_probed) return bad_target(can_be_probed.error());
    if (!has_file_wildcard) warn_unless_mapped(request, found.path, *found.file, pid);
    if (!is_new_file(seen, *found.file)) continue;
    const std::string why = found.locations.empty() ? why_cut_off(*found.file) : "";
    if (!why.empty()) return report_unavailable(request, "bad-target", why);
    std::optional<Variables> variables;
    if (request.uses.context) variables.emplace(request.kernel.arch(), found.locations, *found.file);
    std::vector<spec::BoundProbe> in_file;
    for (const UsdtLocation& location : found.locations) {
      if (location.file_offset == 0) continue;  // no byte of the file is loaded there
      spec::BoundProbe bound;
      bound.probe.provider = kUsdt.name;
      bound.probe.target = found.path;
      bound.probe.function = location.name;
      bound.probe.name = fmt::format("usdt:{}:{}:{}", found.path, location.provider, location.name);
      bound.probe.address = location.file_offset;
      bound.probe.reference_counter = location.semaphore_file_offset;
      bound.probe.file = found.file->file_state();
      bound.probe.file_start = found.file->offset_in_archive();
      bound.probe.is_optional = has_file_wildcard;
      bound.probe.span = request.point.span;
      bound.share = share_of_uprobe(request.kernel, bound.probe, has_file_wildcard && !request.uses.file);
      bound.share.layout = variables ? resolved_operands(*variables, location) : "";
      in_file.push_back(std::move(bound));
    }
    refuse_breaking(request, *found.file, in_file, nullptr);
    move_behind_nops(request, *found.file, in_file);
    std::ranges::move(in_file, std::back_inserter(out));
  }
  return out;
}

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  return bind_in_processes(
      request, [&](std::optional<uint32_t> pid, SeenFiles& seen) { return bind_names(request, pid, seen); });
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
  for (const std::string& text : symbols::split_usdt_arguments(request.share.layout.value_or(""))) {
    const auto recipe = recipe_of(symbols::parse_usdt_operand(arch, text), arch);
    const types::TypeId type = recipe && recipe->is_signed ? request.types.int64() : request.types.uint64();
    spec::ContextField field{fmt::format("arg{}", out.arguments.size()), type, recipe.value_or(spec::Recipe{})};
    if (const std::string why = why_unresolved(text); !why.empty()) {
      field.unreadable = fmt::format("`{}` cannot be read: {}", field.name, why);
      field.hint = hint_of(why);
    } else if (!recipe) {
      field.unreadable = fmt::format("`{}` is in `{}`, which probes cannot read", field.name, without_size(text));
      field.hint = "the kernel does not give probes access to vector registers and segments";
    }
    out.arguments.push_back(std::move(field));
  }
  return out;
}

// " (`arg0` cannot be read: ...)" for each operand whose symbol is not known.
std::string unreadable_operands(const std::optional<Variables>& variables, const UsdtLocation& location) {
  if (!variables) return "";
  std::string out;
  size_t index = 0;
  for (const std::string& text : symbols::split_usdt_arguments(location.arguments)) {
    if (const std::string why = why_unresolved(variables->resolved(text, location)); !why.empty())
      out += fmt::format(" (`arg{}` cannot be read: {})", index, why);
    ++index;
  }
  return out;
}

Status attach(spec::AttachRequest& request) { return attach_uprobes(request, request.probes, false); }

void list_of_process(spec::ListRequest& request, std::optional<uint32_t> pid, SeenFiles& seen,
                     std::vector<spec::ListedProbe>& out) {
  Target target;
  if (request.parts.size() == 1) {
    target.file = request.parts[0];
  } else if (const auto parsed = parse_target(request.parts, pid)) {
    target = *parsed;
  }
  if (target.file.empty() && pid) target.file = fmt::format("/proc/{}/exe", *pid);
  if (request.symbols == nullptr) return;
  const auto files = find(*request.symbols, request.kernel.arch(), target, pid);
  if (!files) return;
  for (const Found& found : *files) {
    if (!is_new_file(seen, *found.file)) continue;
    std::unordered_map<std::string, size_t> places;  // in `out`
    std::optional<Variables> variables;
    if (request.verbose) variables.emplace(request.kernel.arch(), found.locations, *found.file);
    for (const UsdtLocation& location : found.locations) {
      const std::string name = fmt::format("usdt:{}:{}:{}", found.path, location.provider, location.name);
      const auto [place, is_new] = places.try_emplace(name, out.size());
      if (is_new) out.push_back({name, {}});
      if (!request.verbose) continue;
      const std::string counter = location.semaphore_file_offset == 0 ? "" : " with a semaphore";
      out[place->second].arguments.push_back(fmt::format("at {:#x}{}: {}{}", location.address, counter,
                                                         location.arguments, unreadable_operands(variables, location)));
    }
  }
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  SeenFiles seen;
  std::vector<spec::ListedProbe> out;
  const std::vector<spec::TracedProcess>& processes = request.config.tracee.processes;
  if (processes.empty()) list_of_process(request, std::nullopt, seen, out);
  for (const spec::TracedProcess& process : processes) list_of_process(request, process.pid, seen, out);
  return out;
}

// Why nothing is found in the file of the request, or that it has no such probes at all.
std::string tell_why_none(spec::ListRequest& request) {
  const std::string why = tell_why_unreadable(request);
  if (!why.empty() || request.parts.size() < 2 || has_wildcard(request.parts[0])) return why;
  spec::ListRequest all{request.parts.first(1), false, request.kernel, request.types, request.symbols, request.config};
  return list(all).empty() ? fmt::format("{} has no USDT probes", request.parts[0]) : "";
}

}  // namespace

extern const spec::Provider kUsdt = {
    .name = "usdt",
    .aliases = {"U"},
    .doc =
        "Fires at a probe that is compiled into a program or library. Arguments are arg0, arg1, ...; its semaphore is "
        "incremented while the probe is attached. `-lv` lists addresses and operands. BINARY may be a pattern: `*` "
        "matches the files that processes run or the files of the `-p` process.",
    .form = "usdt:BINARY:NAME or usdt:BINARY:PROVIDER:NAME",
    .bind = bind,
    .context = context,
    .attach = attach,
    .list = list,
    .tell_similar = tell_why_none,
    .find_type = find_program_type,
    .needs_target_to_list = true,
    .example = "usdt:libc:setjmp { @[comm] = count(); }"};

}  // namespace espy::probes
