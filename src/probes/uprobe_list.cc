// The listing of uprobe and uretprobe: functions of programs and libraries, and statements.
#include "probes/uprobe_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "probes/common.h"
#include "probes/uprobe_debug.h"
#include "probes/user_function.h"
#include "symbols/debug_info.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

enum class Kind : uint8_t { kEntry, kReturn };

std::string_view name_of(Kind kind) { return kind == Kind::kEntry ? "uprobe" : "uretprobe"; }

std::vector<std::shared_ptr<const symbols::ElfFile>> listed_files(spec::ListRequest& request, std::string_view binary) {
  const auto& pid = request.config.pid;
  const std::string target = binary.empty() && pid ? fmt::format("/proc/{}/exe", *pid) : std::string(binary);
  std::vector<std::string> paths;
  if (has_wildcard(target))
    paths = symbols::find_libraries(target, pid);
  else if (auto path = symbols::resolve_library(target, pid, request.kernel.arch()))
    paths.push_back(std::move(*path));
  std::vector<std::shared_ptr<const symbols::ElfFile>> out;
  for (const std::string& path : paths)
    if (const auto file = request.symbols->elf_file(path)) out.push_back(*file);
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
  if (request.parts.empty() && !request.config.pid) return {};
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
