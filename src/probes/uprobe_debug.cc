#include "probes/uprobe_debug.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace espy::probes {

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
    return fail(fmt::format("the debug information of `{}` is in {}, which is not found", probe.function, part), 0,
                "put it there or into the directory of the program, or PROGRAM.dwp into that of --debuginfo");
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

}  // namespace espy::probes
