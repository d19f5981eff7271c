#include "cli/dump.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/strings.h"
#include "syntax/lexer.h"

namespace espy::cli {

std::string dump_tokens(const source::Sources& sources, source::SourceId script) {
  const std::string_view text = sources[script].text;
  syntax::Lexer lexer(text);
  std::string out;
  for (syntax::Token token = lexer.next(); token.kind != syntax::TokenKind::kEnd; token = lexer.next()) {
    const source::LineColumn place = sources.line_column(script, token.begin);
    out +=
        fmt::format("{}:{} {}\n", place.line, place.column, escape(text.substr(token.begin, token.end - token.begin)));
  }
  return out;
}

std::string dump_types(const check::Checked& checked, const types::Types& types) {
  const auto name = [&](types::TypeId type) { return type ? types::to_string(types, type) : "?"; };
  std::string out;
  for (const check::CheckedMap& map : checked.maps)
    out += fmt::format("{} key={} value={}\n", map.name, name(map.key), name(map.value));
  for (const check::Unit& unit : checked.units) {
    out += unit.function != nullptr ? fmt::format("fn {}\n", unit.function->name) : "action\n";
    for (const program::ProbeId id : unit.probes)
      out += fmt::format("  probe {}\n", printable_line(checked.probes[id].name));
    for (const spec::ContextField& field : unit.context.args)
      out += fmt::format("  args.{} {}\n", field.name, name(field.type));
    for (const spec::ContextField& field : unit.context.locals)
      out += fmt::format("  locals.{} {}\n", field.name, name(field.type));
    for (const check::Variable& variable : unit.variables)
      out += fmt::format("  {} {}\n", variable.name, name(variable.type));
  }
  return out;
}

std::string dump_events(const program::Program& program, const types::Types& types) {
  std::string out;
  for (const program::EventId id : program.events.ids()) {
    const program::EventSchema& schema = program.events[id];
    out += fmt::format("{} {} {} bytes", id.index, schema.builtin, schema.size_bytes);
    for (const program::EventField& field : schema.fields)
      out += fmt::format(", {} at {}{}", types::to_string(types, field.type), field.offset_bytes,
                         field.is_in_tail ? " in the tail" : "");
    out += '\n';
  }
  return out;
}

}  // namespace espy::cli
