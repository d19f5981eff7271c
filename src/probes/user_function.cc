#include "probes/user_function.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "probes/uprobe_debug.h"
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

void warn_unless_mapped(const spec::BindRequest& request, const std::string& path, const symbols::ElfFile& file) {
  if (!request.config.pid || request.config.follows || request.is_listing) return;
  const uint32_t pid = *request.config.pid;
  if (std::ranges::find(request.earlier, path, &program::Probe::target) != request.earlier.end()) return;
  const FileIdentity& wanted = file.file_state().identity;
  std::vector<symbols::Mapping> others;
  bool is_mapped = false;
  const auto compare_numbers = [&](const symbols::Mapping& mapping) {
    is_mapped = symbols::is_mapped_inode(wanted.inode, mapping.inode);
    others.push_back(mapping);
    return !is_mapped;
  };
  if (!symbols::visit_mapped_code(pid, kMaxTextBytes, compare_numbers) || is_mapped || others.empty()) return;
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
  const auto& pid = request.config.pid;
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
    const bool may_be_name = !has_wildcard(pattern.text) || is_name_of_go(pattern.text);
    auto symbol = may_be_name ? file.find_function(pattern.text) : std::nullopt;
    if (symbol) return {std::move(*symbol)};
    if (has_wildcard(pattern.text)) return file.functions(pattern.text);
    pattern.is_source_name = true;
  }
  std::vector<symbols::ElfSymbol> found = file.functions_by_demangled_name(pattern.text);
  if (pattern.prefix == kRust)
    std::erase_if(found, [](const symbols::ElfSymbol& symbol) { return !is_rust(symbol.name); });
  return found;
}

std::string function_in_probe_name(const FunctionPattern& pattern, const std::string& symbol,
                                   const spec::Config& config) {
  const std::string demangled = symbols::demangle(symbol);
  if (!pattern.is_source_name || !config.cpp_demangle || demangled == symbol) return symbol;
  const std::string_view prefix = !pattern.prefix.empty() ? pattern.prefix : is_rust(symbol) ? kRust : "cpp";
  return fmt::format("{}:\"{}\"", prefix, escape(demangled));
}

std::string shown_function(const std::string& symbol, const spec::Config& config) {
  return config.cpp_demangle ? symbols::demangle(symbol) : symbol;
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

}  // namespace espy::probes
