#include "lsp/diagnostics.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace espy::lsp {
namespace {

// The place in the script: that of a macro's call, of the import that leads to it, or its begin.
source::Span place_in_script(const Analysis& analysis, source::Span span) {
  while (span.valid() && span.expansion.valid()) span = analysis.sources[span.expansion].call;
  while (span.valid() && span.source != analysis.script) span = analysis.sources[span.source].imported_at;
  return span.valid() ? span : source::Span{analysis.script, 0, 0};
}

Json diagnostic(const Document& document, const source::Diagnostic& each) {
  const Analysis& analysis = *document.analysis;
  const source::Span place = place_in_script(analysis, each.span);
  std::string message = each.message;
  if (each.span.valid() && each.span.source != analysis.script) {
    const source::LineColumn at = analysis.sources.line_column(each.span.source, each.span.begin);
    message = fmt::format("{}:{}: {}", analysis.sources[each.span.source].name, at.line, message);
  }
  if (!each.hint.empty()) message += "\n" + each.hint;
  return {{"range", range_of(document.text, place.begin, place.end)},
          {"severity", each.severity == source::Severity::kError     ? 1
                       : each.severity == source::Severity::kWarning ? 2
                                                                     : 3},
          {"source", "espy"},
          {"code", std::string(each.id)},
          {"message", message}};
}

// X of "did you mean `X`?".
std::string proposal(std::string_view message) {
  constexpr std::string_view kQuestion = "did you mean `";
  const size_t begin = message.find(kQuestion);
  if (begin == message.npos) return "";
  const std::string_view rest = message.substr(begin + kQuestion.size());
  const size_t end = rest.find('`');
  return end == rest.npos ? "" : std::string(rest.substr(0, end));
}

}  // namespace

Json diagnostics(const Document& document) {
  Json out = Json::array();
  if (!document.analysis) return out;
  for (const source::Diagnostic& each : document.analysis->diagnostics.all()) out.push_back(diagnostic(document, each));
  return out;
}

Json code_actions(const Document& document, const Json& diagnostics) {
  Json out = Json::array();
  if (!diagnostics.is_array()) return out;
  for (const Json& each : diagnostics) {
    const std::string wanted = proposal(text_of(at(each, {"message"})));
    const Position start = position_of(at(each, {"range", "start"}));
    const Position end = position_of(at(each, {"range", "end"}));
    if (wanted.empty() || start == end) continue;
    const Json edit = {{"range", {{"start", json_of(start)}, {"end", json_of(end)}}}, {"newText", wanted}};
    out.push_back({{"title", fmt::format("Replace by `{}`", wanted)},
                   {"kind", "quickfix"},
                   {"isPreferred", true},
                   {"diagnostics", Json::array({each})},
                   {"edit", {{"changes", {{document.uri, Json::array({edit})}}}}}});
  }
  return out;
}

}  // namespace espy::lsp
