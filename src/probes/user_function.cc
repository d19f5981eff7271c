#include "probes/user_function.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "probes/probe_support.h"
#include "symbols/debug_info.h"
#include "symbols/demangle.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

constexpr std::string_view kRust = "rust";

bool is_rust(const std::string& symbol) { return !symbols::demangle_rust(symbol).empty(); }

// Whether stars and brackets stand only where names of Go have them: `main.(*Store).Get`, `main.Map[go.shape.int]`,
// `main.Map[...]`.
bool is_name_of_go(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view behind = text.substr(i + 1);
    if (text[i] == '?') return false;
    if (text[i] == '*' && (i == 0 || text[i - 1] != '(')) return false;
    if (text[i] == '[' && !behind.starts_with("go.") && !behind.starts_with("...")) return false;
  }
  return true;
}

// ---- Copies of functions

// Functions of several files that are compiled as one get a suffix, but are the same.
std::vector<symbols::ElfSymbol> renamed(const symbols::ElfFile& file, const std::string& function) {
  std::vector<symbols::ElfSymbol> out;
  for (const std::string_view suffix : {".lto_priv.*", ".llvm.*"})
    for (symbols::ElfSymbol& each : file.functions(function + std::string(suffix))) out.push_back(std::move(each));
  return out;
}

// Whether a symbol is what a linker that compiles several files as one makes of a `static` function: `f.1`,
// `f.llvm.4711`, `f.lto_priv.0`.
bool is_renamed(std::string_view symbol, std::string_view function) {
  std::string_view suffix = symbol.substr(function.size());
  for (const std::string_view word : {".llvm", ".lto_priv"})
    if (suffix.starts_with(word)) suffix.remove_prefix(word.size());
  return suffix.size() > 1 && suffix[0] == '.' && suffix.find_first_not_of("0123456789", 1) == suffix.npos;
}

// What GCC makes of a function (symbols/dwarf/dwarf_file.h, Clone): with other arguments, perhaps without a result, or
// only the part behind a beginning that is inlined.
enum class Made : uint8_t { kNothing, kWithoutArguments, kOtherwise, kPart };

Made made_as(std::string_view symbol) {
  const auto has = [&](std::string_view suffix) { return symbol.find(suffix) != std::string_view::npos; };
  if (has(".part.")) return Made::kPart;
  if (has(".isra.")) return Made::kOtherwise;
  return has(".constprop.") ? Made::kWithoutArguments : Made::kNothing;
}

// ---- Indirect functions

// Whether a name is that of a function with words of CPUs and algorithms: `__strlen_avx2`, but not `__memcpy_chk`.
bool is_implementation(std::string_view name, std::string_view function) {
  constexpr std::string_view kWords[] = {"sse2",   "sse3",       "ssse3",    "sse4",      "sse42", "avx",     "avx2",
                                         "avx512", "evex",       "evex512",  "erms",      "fsrm",  "rtm",     "movbe",
                                         "bmi2",   "fma",        "fma4",     "unaligned", "no",    "generic", "default",
                                         "c",      "vzeroupper", "slow",     "back",      "asm",   "ifma",    "asimd",
                                         "neon",   "sve",        "mte",      "mops",      "simd",  "oryon1",  "a64fx",
                                         "falkor", "kunpeng",    "thunderx", "thunderx2", "zva64", "emag"};
  if (name.starts_with("__") && !function.starts_with("__")) name.remove_prefix(2);
  if (!name.starts_with(function) || name.size() == function.size() || name[function.size()] != '_') return false;
  name.remove_prefix(function.size() + 1);
  while (true) {
    const size_t end = name.find('_');
    if (std::ranges::find(kWords, name.substr(0, end)) == std::end(kWords)) return false;
    if (end == std::string_view::npos) return true;
    name.remove_prefix(end + 1);
  }
}

std::string quoted(std::vector<std::string> names) {
  constexpr size_t kMostNames = 8;
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string out;
  for (size_t i = 0; i < names.size() && i < kMostNames; ++i) out += fmt::format("{}`{}`", i > 0 ? ", " : "", names[i]);
  return names.size() > kMostNames ? out + ", ..." : out;
}

// Replaces an indirect function by its implementations. Fails if they are not known, or if another function has the
// same ones.
Result<std::vector<symbols::ElfSymbol>> implementations_of(const symbols::ElfFile& file, const std::string& function) {
  std::vector<symbols::ElfSymbol> out;
  std::set<uint64_t> addresses;
  std::vector<std::string> names;
  const std::vector<symbols::ElfSymbol> all = file.functions();
  for (const symbols::ElfSymbol& each : all) {
    if (each.is_ifunc || each.file_offset == 0 || !is_implementation(each.name, function)) continue;
    names.push_back(each.name);
    if (addresses.insert(each.address).second) out.push_back(each);
  }
  const std::string message = fmt::format(
      "`{}` is an indirect function: the loader asks its code which implementation to call, and never calls it again",
      function);
  if (out.empty())
    return fail(message, 0,
                "name the implementation; its name is known if the file, or its debug package, has all symbols");
  for (const symbols::ElfSymbol& each : all)
    if (addresses.contains(each.address) && !is_implementation(each.name, function))
      return fail(fmt::format("{}; `{}` has the same implementation", message, each.name), 0,
                  fmt::format("name one of {}, which count the calls of both", quoted(names)));
  return out;
}

template <class FileHeader, class SectionHeader>
bool ends_before_sections(const symbols::ElfFile& file) {
  const auto header = load_struct<FileHeader>(file.bytes_at(0, sizeof(FileHeader)), 0);
  return header && header->e_shoff != 0 && file.bytes_at(header->e_shoff, sizeof(SectionHeader)).empty();
}

}  // namespace

Result<std::shared_ptr<const symbols::ElfFile>> open_to_probe(const spec::BindRequest& request,
                                                              const std::string& path) {
  auto file = TRY(request.symbols->elf_file(path));
  const kernel::Arch& arch = request.kernel.arch();
  const kernel::Arch* its = kernel::find_arch(file->machine());  // null for 32-bit files, which the kernel may run
  if (its != nullptr && its != &arch)
    return fail(fmt::format("{} is for {}, and this kernel runs on {}", path, its->name, arch.name));
  return file;
}

bool is_new_file(SeenFiles& seen, const symbols::ElfFile& file) {
  const FileIdentity& identity = file.file_state().identity;
  return seen.emplace(identity.inode, identity.device).second;
}

std::vector<spec::BoundProbe> bind_in_processes(
    const spec::BindRequest& request,
    const std::function<std::vector<spec::BoundProbe>(std::optional<uint32_t> pid, SeenFiles& seen)>& bind) {
  SeenFiles seen;
  const std::vector<spec::TracedProcess>& processes = request.config.tracee.processes;
  if (processes.empty()) return bind(std::nullopt, seen);
  std::vector<spec::BoundProbe> out;
  std::vector<uint32_t> without;
  for (const spec::TracedProcess& process : processes) {
    const size_t seen_before = seen.size();
    std::vector<spec::BoundProbe> found = bind(process.pid, seen);
    if (found.empty() && seen.size() > seen_before) without.push_back(process.pid);
    std::ranges::move(found, std::back_inserter(out));
  }
  if (request.is_listing() || out.empty()) return out;
  for (const uint32_t pid : without)
    request.diagnostics.warning("not-mapped", request.point.span,
                                fmt::format("the files of process {} have no such probe", pid));
  // Containers with the same image have the same file on several devices. The kernel probes the file below (overlayfs).
  // --strict refuses it (run/run_script.cc).
  const auto is_one = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(seen, is_one) != seen.end())
    request.diagnostics.warning(
        "counted-again", request.point.span,
        "a call may count twice: files of these processes may be one file of several containers",
        "trace the processes of one container at a time");
  return out;
}

void warn_unless_mapped(const spec::BindRequest& request, const std::string& path, const symbols::ElfFile& file,
                        std::optional<uint32_t> process) {
  if (!process || request.config.tracee.follows || request.is_listing()) return;
  const uint32_t pid = *process;
  if (std::ranges::find(request.earlier, path, &program::Probe::target) != request.earlier.end()) return;
  const FileIdentity& wanted = file.file_state().identity;
  std::vector<symbols::Mapping> others;
  bool is_mapped = false, may_have_probes = true;
  const auto compare_numbers = [&](const symbols::Mapping& mapping) {
    is_mapped = symbols::is_mapped_inode(wanted.inode, mapping.inode);
    may_have_probes = !is_mapped || mapping.may_have_probes;
    others.push_back(mapping);
    return !is_mapped;
  };
  const bool is_known = symbols::visit_mapped_code(pid, kMaxTextBytes, compare_numbers).has_value();
  if (is_mapped && !may_have_probes)  // --strict refuses it (run/run_script.cc)
    request.diagnostics.warning(
        "never-fires", request.point.span,
        fmt::format("process {} maps {} writable or shared, where the kernel puts no probes", pid, path));
  if (!is_known || is_mapped || others.empty()) return;
  // On some file systems, stat(2) has other numbers than the kernel.
  std::string former;  // a deleted file of the same name
  for (const symbols::Mapping& mapping : others) {
    const std::string link = symbols::map_files_path(pid, mapping.start, mapping.end);
    const auto identity = identity_of(link);
    if (identity && identity->device == wanted.device && identity->inode == wanted.inode) return;
    const bool has_name = mapping.deleted && base_name(mapping.path) == base_name(path);
    const std::string exe = fmt::format("/proc/{}/exe", pid);
    if (has_name && former.empty()) former = identity && identity_of(exe) == identity ? exe : link;
  }
  request.diagnostics.warning(
      "not-mapped", request.point.span, fmt::format("process {} does not map {}", pid, path),
      former.empty() ? "" : fmt::format("it maps a file of this name that was deleted: `{}` leads to that", former));
}

std::string why_cut_off(const symbols::ElfFile& file) {
  const bool is_cut_off = file.is_64bit() ? ends_before_sections<Elf64_Ehdr, Elf64_Shdr>(file)
                                          : ends_before_sections<Elf32_Ehdr, Elf32_Shdr>(file);
  return is_cut_off ? file.path() + " is truncated: it ends before its section headers" : "";
}

std::string tell_why_unreadable(spec::ListRequest& request) {
  const std::vector<spec::TracedProcess>& processes = request.config.tracee.processes;
  const std::optional<uint32_t> pid = processes.empty() ? std::nullopt : std::optional(processes.front().pid);
  const auto place = parse_line_target(request.parts);
  std::string target = place ? place->binary : request.parts.empty() ? "" : request.parts[0];
  if (target.empty() && pid) target = fmt::format("/proc/{}/exe", *pid);
  if (target.empty() || has_wildcard(target) || request.symbols == nullptr) return "";
  const auto path = symbols::resolve_library(target, pid, request.kernel.arch());
  const auto file = path ? request.symbols->elf_file(*path) : tl::unexpected(path.error());
  return file ? why_cut_off(**file) : file.error().message;
}

std::optional<FunctionPattern> parse_function_pattern(std::span<const std::string> parts) {
  if (parts.empty()) return std::nullopt;
  const bool has_prefix = parts.size() > 1 && (parts[0] == "cpp" || parts[0] == kRust);
  const auto name = has_prefix ? parts.subspan(1) : parts;
  FunctionPattern out{.text = join(name, ":"), .prefix = has_prefix ? parts[0] : ""};
  out.is_source_name = has_prefix || out.text.find("::") != std::string::npos;
  if (out.text.empty() || (name.size() > 1 && !out.is_source_name)) return std::nullopt;
  return out;
}

std::vector<symbols::ElfSymbol> find_user_functions(const symbols::ElfFile& file, FunctionPattern& pattern) {
  if (!pattern.is_source_name) {
    // In `work_*` a wildcard is meant, also where a file has a function of just that name.
    const bool may_be_name = has_wildcard(pattern.text) && is_name_of_go(pattern.text);
    // Instances of a generic function of Go have one name.
    if (may_be_name)
      if (std::vector<symbols::ElfSymbol> named = file.functions_named(pattern.text); !named.empty()) return named;
    // Several source files may have a function of this name.
    std::vector<symbols::ElfSymbol> found = file.functions(pattern.text);
    if (found.empty() && !has_wildcard(pattern.text)) found = renamed(file, pattern.text);
    if (!found.empty() || has_wildcard(pattern.text)) return found;
    pattern.is_source_name = true;
  }
  std::vector<symbols::ElfSymbol> found = file.functions_by_demangled_name(pattern.text);
  // What a compiler has made of a coroutine runs each time that it is resumed, and at its end.
  std::erase_if(found, [&](const symbols::ElfSymbol& symbol) {
    constexpr std::string_view kParts[] = {".actor", ".resume", ".destroy", ".cleanup"};
    return std::ranges::any_of(kParts, [&](std::string_view part) {
      return symbol.name.ends_with(part) && pattern.text.find(part.substr(1)) == pattern.text.npos;
    });
  });
  if (pattern.prefix == kRust)
    std::erase_if(found, [](const symbols::ElfSymbol& symbol) { return !is_rust(symbol.name); });
  return found;
}

bool may_be_alias(const std::string& a, const std::string& b) {
  constexpr size_t kLeastShared = 3;
  if (symbols::demangle(a) == symbols::demangle(b)) return true;
  const auto core = [](std::string_view name) {
    name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
    if (name.ends_with("64")) name.remove_suffix(2);
    return name;
  };
  const std::string_view one = core(a), other = core(b);
  const std::string_view shorter = one.size() < other.size() ? one : other;
  const std::string_view longer = one.size() < other.size() ? other : one;
  return one == other || (shorter.size() >= kLeastShared && longer.find(shorter) != longer.npos);
}

std::vector<std::string> made_of(const symbols::ElfFile& file, const std::string& function) {
  std::vector<std::string> out;
  for (const symbols::ElfSymbol& each : file.functions(function + ".*"))
    if (made_as(each.name) != Made::kNothing) out.push_back(each.name);
  return out;
}

ProbedFunctions choose_functions(const symbols::ElfFile& file, const FunctionPattern& pattern,
                                 std::vector<symbols::ElfSymbol> found, const ReadByAction& read) {
  ProbedFunctions out;
  if (file.go_binary()) {
    // A function in assembly language has two entries, of which the one for Go calls the other.
    const std::string other = pattern.text + ".abi0";
    const bool has_other = !has_wildcard(pattern.text) && file.find_function(other);
    return {std::move(found), has_other ? std::vector{fmt::format("code in assembly language calls `{}`", other)}
                                        : std::vector<std::string>()};
  }
  const bool is_named = !has_wildcard(pattern.text);
  if (is_named && !pattern.is_source_name && pattern.text.find('.') == std::string::npos)
    for (symbols::ElfSymbol& each : file.functions(pattern.text + ".*"))
      if (made_as(each.name) != Made::kNothing || is_renamed(each.name, pattern.text))
        if (std::ranges::find(found, each.address, &symbols::ElfSymbol::address) == found.end())
          found.push_back(std::move(each));
  std::vector<std::string> indirect, other_arguments, parts;
  for (symbols::ElfSymbol& each : found) {
    const Made made = pattern.text.find('.') == std::string::npos ? made_as(each.name) : Made::kNothing;
    const bool has_other_values = read.registers && (!read.is_return || made == Made::kOtherwise);
    if (each.is_ifunc && is_named) {
      auto implementations = implementations_of(file, each.name);
      if (!implementations) return {{}, {}, implementations.error()};
      std::ranges::move(*implementations, std::back_inserter(out.functions));
    } else if (each.is_ifunc) {
      indirect.push_back(each.name);
    } else if (made == Made::kPart && is_named) {
      parts.push_back(each.name);
    } else if (made != Made::kNothing && has_other_values) {
      other_arguments.push_back(each.name);
    } else {
      out.functions.push_back(std::move(each));
    }
  }
  if (!other_arguments.empty())
    out.missed.push_back(
        fmt::format("{} take{} other arguments", quoted(other_arguments), other_arguments.size() == 1 ? "s" : ""));
  if (!parts.empty()) out.missed.push_back(fmt::format("{} is called where the beginning is inlined", quoted(parts)));
  if (!indirect.empty() && pattern.text != "*")
    out.missed.push_back(fmt::format("{} {}", quoted(indirect),
                                     indirect.size() == 1 ? "is an indirect function" : "are indirect functions"));
  return out;
}

std::string function_in_probe_name(const FunctionPattern& pattern, const std::string& symbol,
                                   const spec::Config& config) {
  const std::string demangled = symbols::demangle(symbol);
  if (!pattern.is_source_name || !config.symbols.demangle || demangled == symbol) return symbol;
  const std::string_view prefix = !pattern.prefix.empty() ? pattern.prefix : is_rust(symbol) ? kRust : "cpp";
  return fmt::format("{}:\"{}\"", prefix, escape(demangled));
}

std::string shown_function(const std::string& symbol, const spec::Config& config) {
  return config.symbols.demangle ? symbols::demangle(symbol) : symbol;
}

std::string nearest_function(const symbols::ElfFile& file, const FunctionPattern& pattern) {
  const bool has_symbols = pattern.prefix.empty() && pattern.text.find("::") == std::string::npos;
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    // A demangled name can be a thousand times as long as its symbol.
    if (name.size() <= 2 * pattern.text.size()) names.push_back(std::move(name));
  };
  for (const symbols::ElfSymbol& symbol : file.functions()) {
    if (has_symbols) add(symbol.name);
    std::string plain = symbols::demangle(symbol.name, symbols::DemangleStyle::kName);
    if (plain != symbol.name) add(std::move(plain));
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return nearest(pattern.text, candidates);
}

namespace {

using symbols::DebugVariable;

spec::ContextField field_of(DebugVariable variable, const types::Types& types, const std::string& binary) {
  spec::ContextField out;
  out.name = variable.name;
  out.type = variable.type;
  out.recipe.kind = spec::Recipe::Kind::kLocation;
  if (variable.place) out.recipe.place = std::move(*variable.place);
  if (types[variable.type].kind == types::Kind::kVoid)
    out.unreadable = fmt::format("the type of `{}` is not supported: {}", variable.name, variable.c_type);
  if (!variable.why.empty()) out.unreadable = fmt::format("`{}` {}", variable.name, variable.why);
  const symbols::ReadableLines& readable = variable.readable;
  if (!readable.text.empty())
    out.hint =
        fmt::format("readable at {}: uprobe:{}@{}:{}", readable.text, binary, base_name(readable.file), readable.first);
  return out;
}

void append_key(std::string& out, const std::vector<types::LocationOp>& steps) {
  for (const types::LocationOp& step : steps) out += fmt::format("{}:{} ", static_cast<int>(step.op), step.operand);
}

void append_key(std::string& out, const spec::ContextField& field) {
  // Lengths precede the names, because names come from a file, and two layouts must not share a key.
  out += fmt::format("{} {} {} {} {} ", field.name.size(), field.name, field.type.index, field.unreadable.size(),
                     field.unreadable);
  for (const types::LocationPiece& piece : field.recipe.place.pieces) {
    out += fmt::format("{} {} {} ", static_cast<int>(piece.kind), piece.size_bytes, piece.bytes);
    append_key(out, piece.steps);
    for (const auto& callers : piece.callers) {
      for (const types::CallSite& each : callers) {
        out += fmt::format("{}> ", each.return_address);
        append_key(out, each.steps);
      }
    }
  }
  out += ';';
}

// Adds the arguments that no variable hides.
std::vector<spec::ContextField> with_arguments(std::vector<spec::ContextField> variables,
                                               const std::vector<spec::ContextField>& arguments) {
  std::set<std::string> hidden;
  for (const spec::ContextField& each : variables) hidden.insert(each.name);
  for (const spec::ContextField& each : arguments)
    if (!hidden.contains(each.name)) variables.push_back(each);
  return variables;
}

}  // namespace

Result<UserFields> user_fields(const symbols::ElfFile& file, types::Types& types, const program::Probe& probe,
                               const WantedFields& wanted) {
  if (!file.is_64bit())
    return fail(fmt::format("arguments, results and variables of 32-bit programs cannot be read: {}", file.path()), 0,
                "`reg(NAME)` has the registers, the functions can be counted");
  const auto debug = TRY(file.debug_info());
  auto address = file.address_of_offset(probe.address);
  // A probe after the stack check of a Go function is treated as its entry, one at a `ret` as its return.
  const bool is_boundary = wanted.retval || (probe.offset == 0 && probe.number == 0);
  const auto function = file.go_binary() && address && is_boundary ? file.function_at(*address) : std::nullopt;
  if (function && function->name == probe.function) address = function->address;
  if (const std::string part = address ? debug->missing_part(*address) : ""; !part.empty())
    return fail(fmt::format("debug information for `{}` not found: {} is missing", probe.function, part), 0,
                "put it there or beside the program, or put PROGRAM.dwp into the --debuginfo directory");
  const bool is_known = address && debug->knows(*address);
  TRY_STATUS(debug->status());
  if (!is_known)
    return fail(fmt::format("the debug information of {} does not describe `{}`", file.path(), probe.function), 0,
                "compile its source file with -g");
  const std::string_view inlined = probe.number != 0 ? std::string_view(probe.function) : "";
  const std::string& binary = file.path();
  const auto fields = [&](std::vector<DebugVariable> variables) {
    std::vector<spec::ContextField> out;
    for (DebugVariable& each : variables) out.push_back(field_of(std::move(each), types, binary));
    return out;
  };
  UserFields out;
  if (wanted.args || wanted.locals) out.args = fields(debug->arguments(types, *address, inlined));
  if (wanted.locals) out.locals = with_arguments(fields(debug->locals(types, *address, inlined)), out.args);
  if (wanted.retval)
    if (auto result = debug->result(types, *address)) out.retval = field_of(std::move(*result), types, binary);
  TRY_STATUS(debug->status());
  return out;
}

std::string layout_key(const UserFields& fields) {
  std::string out;
  for (const spec::ContextField& field : fields.args) append_key(out, field);
  out += '|';
  for (const spec::ContextField& field : fields.locals) append_key(out, field);
  out += '|';
  if (fields.retval) append_key(out, *fields.retval);
  return out;
}

std::optional<LineTarget> parse_line_target(std::span<const std::string> parts) {
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  const size_t at = parts[0].rfind('@');
  if (at == std::string::npos || at + 1 == parts[0].size()) return std::nullopt;
  const auto number = [](const std::string& text) -> std::optional<uint32_t> {
    if (text == "*") return 0;
    const auto value = parse_int(text);
    return value && *value > 0 && *value < UINT32_MAX ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
  };
  const auto line = number(parts[1]);
  const auto column = parts.size() == 3 ? number(parts[2]) : std::optional<uint32_t>(0);
  if (!line || !column) return std::nullopt;
  return LineTarget{parts[0].substr(0, at), parts[0].substr(at + 1), *line, *column};
}

std::string nearest_lines_hint(symbols::DebugInfo& debug, const LineTarget& place) {
  const std::vector<uint32_t> lines = debug.lines(place.file);
  const auto after = std::ranges::lower_bound(lines, place.line);
  if (lines.empty()) return "";
  if (after != lines.end() && *after == place.line) return "a statement begins at another column of this line";
  if (after == lines.begin()) return fmt::format("the first statement begins at line {}", *after);
  if (after == lines.end()) return fmt::format("the last statement begins at line {}", lines.back());
  return fmt::format("statements begin at lines {} and {}", *std::prev(after), *after);
}

std::string most_similar_file(symbols::DebugInfo& debug, const std::string& file) {
  const std::vector<std::string> files = debug.files();
  std::vector<std::string_view> names;
  for (const std::string_view path : files) names.push_back(base_name(path));
  return nearest(base_name(file), names);
}

namespace {

std::string description(const DebugVariable& variable, const kernel::Arch& arch) {
  const auto name = [&](uint32_t offset_bytes) { return kernel::register_name(arch, offset_bytes); };
  std::string where = variable.why;
  if (variable.place) where += (where.empty() ? "" : ": ") + types::to_string(*variable.place, name);
  if (!variable.place && !variable.readable.text.empty()) where += "; readable at " + variable.readable.text;
  const std::string_view space = variable.c_type.ends_with('*') ? "" : " ";
  return fmt::format("{}{}{}: {}", variable.c_type, space, variable.name, where);
}

}  // namespace

std::vector<std::string> describe_variables(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address, std::string_view inlined) {
  std::vector<std::string> out;
  for (const DebugVariable& each : debug.arguments(types, address, inlined)) out.push_back(description(each, arch));
  for (const DebugVariable& each : debug.locals(types, address, inlined)) out.push_back(description(each, arch));
  return out;
}

std::vector<std::string> describe_arguments(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                            uint64_t address) {
  std::vector<std::string> out;
  for (const DebugVariable& each : debug.arguments(types, address, "")) out.push_back(description(each, arch));
  return out;
}

std::vector<std::string> describe_result(symbols::DebugInfo& debug, types::Types& types, const kernel::Arch& arch,
                                         uint64_t address) {
  const auto result = debug.result(types, address);
  return result ? std::vector<std::string>{description(*result, arch)} : std::vector<std::string>{};
}

// ---- The listing of uprobe and uretprobe: functions of programs and libraries, and statements.

namespace {

enum class Kind : uint8_t { kEntry, kReturn };

std::string_view name_of(Kind kind) { return kind == Kind::kEntry ? "uprobe" : "uretprobe"; }

void add_listed_files(spec::ListRequest& request, std::string_view binary, std::optional<uint32_t> pid, SeenFiles& seen,
                      std::vector<std::shared_ptr<const symbols::ElfFile>>& out) {
  const std::string target = binary.empty() && pid ? fmt::format("/proc/{}/exe", *pid) : std::string(binary);
  std::vector<std::string> paths;
  if (has_wildcard(target))
    paths = symbols::find_libraries(target, pid);
  else if (auto path = symbols::resolve_library(target, pid, request.kernel.arch()))
    paths.push_back(std::move(*path));
  for (const std::string& path : paths)
    if (const auto file = request.symbols->elf_file(path); file && is_new_file(seen, **file)) out.push_back(*file);
}

std::vector<std::shared_ptr<const symbols::ElfFile>> listed_files(spec::ListRequest& request, std::string_view binary) {
  std::vector<std::shared_ptr<const symbols::ElfFile>> out;
  SeenFiles seen;
  const std::vector<spec::TracedProcess>& processes = request.config.tracee.processes;
  if (processes.empty()) add_listed_files(request, binary, std::nullopt, seen, out);
  for (const spec::TracedProcess& process : processes) add_listed_files(request, binary, process.pid, seen, out);
  return out;
}

// Lists statements as probes; with -v, also their addresses and the variables that are readable there.
std::vector<spec::ListedProbe> list_statements(spec::ListRequest& request, const symbols::ElfFile& file,
                                               symbols::DebugInfo& debug,
                                               const std::vector<symbols::Statement>& statements) {
  std::vector<spec::ListedProbe> out;
  for (const symbols::Statement& statement : statements) {
    const std::string_view name = base_name(statement.file);
    spec::ListedProbe listed{fmt::format("uprobe:{}@{}:{}", file.path(), name, statement.line)};
    if (!request.verbose) {
      if (out.empty() || out.back().name != listed.name) out.push_back(std::move(listed));
      continue;
    }
    std::string where = fmt::format("column {} in {}", statement.column, statement.function);
    if (!statement.inlined_into.empty()) where += ", inlined into " + statement.inlined_into;
    if (const auto function = file.function_at(statement.address))
      where += fmt::format(", at {}+{}", function->name, statement.address - function->address);
    listed.arguments =
        describe_variables(debug, request.types, request.kernel.arch(), statement.address, statement.function);
    listed.arguments.insert(listed.arguments.begin(), std::move(where));
    out.push_back(std::move(listed));
  }
  return out;
}

void add_listed(spec::ListRequest& request, Kind kind, const symbols::ElfFile& file, const std::string& function,
                const symbols::ElfSymbol& symbol, std::vector<spec::ListedProbe>& out) {
  spec::ListedProbe listed{fmt::format("{}:{}:{}", name_of(kind), file.path(), function), {}};
  if (request.verbose) {
    if (const auto debug = file.debug_info())
      listed.arguments = kind == Kind::kEntry
                             ? describe_arguments(**debug, request.types, request.kernel.arch(), symbol.address)
                             : describe_result(**debug, request.types, request.kernel.arch(), symbol.address);
    if (!request.shows_locations)
      for (std::string& argument : listed.arguments) argument.resize(argument.find(": "));
  }
  if (symbol.is_ifunc) listed.arguments = {"an indirect function: the loader chooses one of its implementations"};
  out.push_back(std::move(listed));
}

void list_functions(spec::ListRequest& request, Kind kind, const symbols::ElfFile& file,
                    std::vector<spec::ListedProbe>& out) {
  auto pattern = request.parts.size() < 2 ? FunctionPattern{"*"} : parse_function_pattern(request.parts.subspan(1));
  if (!pattern) return;
  const std::vector<symbols::ElfSymbol> found = find_user_functions(file, *pattern);
  // A demangled name can be a thousand times as long as its symbol. Too many of them are listed by their symbols.
  constexpr uint64_t kLeastBytes = 1 << 20, kPerByte = 16;
  uint64_t left_bytes = kLeastBytes;
  for (const symbols::ElfSymbol& symbol : found) left_bytes += symbol.name.size() * kPerByte;
  const symbols::ElfSymbol* before = nullptr;
  for (const symbols::ElfSymbol& symbol : found) {
    // One name may stand for functions of several source files.
    if (before != nullptr && before->name == symbol.name && !request.verbose) continue;
    before = &symbol;
    std::string function = function_in_probe_name(*pattern, symbol.name, request.config);
    if (function.size() > left_bytes) function = symbol.name;
    left_bytes -= std::min<uint64_t>(left_bytes, function.size());
    add_listed(request, kind, file, function, symbol, out);
  }
  const bool shows_statements = request.shows_locations && found.size() == 1 && kind == Kind::kEntry;
  const auto debug = shows_statements ? file.debug_info() : fail("");
  if (!debug) return;
  for (spec::ListedProbe& each :
       list_statements(request, file, **debug, (*debug)->statements_of(found.front().address)))
    out.push_back(std::move(each));
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request, Kind kind) {
  if (request.parts.empty() && request.config.tracee.processes.empty()) return {};
  std::vector<spec::ListedProbe> out;
  if (const auto place = parse_line_target(request.parts)) {
    const auto files = listed_files(request, place->binary);
    const auto debug = files.size() == 1 && kind == Kind::kEntry ? files[0]->debug_info() : fail("");
    if (!debug) return {};
    return list_statements(request, *files[0], **debug, (*debug)->statements(place->file, place->line, place->column));
  }
  for (const auto& file : listed_files(request, request.parts.empty() ? "" : request.parts[0]))
    list_functions(request, kind, *file, out);
  return out;
}

}  // namespace

std::vector<spec::ListedProbe> list_uprobes(spec::ListRequest& request) { return list(request, Kind::kEntry); }
std::vector<spec::ListedProbe> list_uretprobes(spec::ListRequest& request) { return list(request, Kind::kReturn); }

}  // namespace espy::probes
