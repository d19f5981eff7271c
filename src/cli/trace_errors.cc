#include "cli/trace_errors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace espy::cli {

namespace {

std::string argument_hint(const TraceScript::Part& part, std::string_view wrong) {
  const std::vector<std::string_view> known(part.arguments.begin(), part.arguments.end());
  const std::string near = nearest(wrong, known);
  if (!near.empty()) return fmt::format("did you mean `{}`?", near);
  if (known.empty()) return "the names of its arguments are not known";
  return fmt::format("its arguments are {}", join(part.arguments, ", "));
}

}  // namespace

source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script, const source::Sources& sources) {
  for (const TraceScript::Part& part : script.parts) {
    if (std::ranges::find(part.typed, diagnostic.span.source) == part.typed.end()) continue;
    diagnostic.notes.clear();  // they are about other places of the script
    if (diagnostic.id == "unknown-name") diagnostic.hint = argument_hint(part, sources.text(diagnostic.span));
    break;
  }
  return diagnostic;
}

}  // namespace espy::cli
