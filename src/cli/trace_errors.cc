#include "cli/trace_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"

namespace espy::cli {

namespace {

// The item with its variables, as the script has it, differs from what was typed in `$` alone; `return` and `retval`
// are equally long. Returns the offset in what was typed.
size_t typed_offset(std::string_view typed, std::string_view written, size_t offset) {
  size_t at = 0;
  for (size_t i = 0; i < offset; ++i)
    if (written[i] != '$' || (at < typed.size() && typed[at] == '$')) ++at;
  return std::min(at, typed.size());
}

// The bytes [begin, end) of the target that the bytes [begin, end) of the script were made of.
std::optional<std::pair<size_t, size_t>> typed_range(const TraceScript& script, const TraceScript::Part& part,
                                                     const TraceItem& item, const std::string& written, size_t begin,
                                                     size_t end) {
  for (size_t at = script.text.find(written, part.begin); at != std::string::npos && at <= begin;
       at = script.text.find(written, at + 1)) {
    if (end > at + written.size()) continue;
    return std::pair(item.offset + typed_offset(item.text, written, begin - at),
                     item.offset + typed_offset(item.text, written, end - at));
  }
  return std::nullopt;
}

std::optional<std::pair<size_t, size_t>> find_range(const TraceScript& script, const TraceScript::Part& part,
                                                    size_t begin, size_t end) {
  for (const auto* items : {&part.target.filters, &part.target.values})
    for (const TraceItem& item : *items)
      if (const auto found = typed_range(script, part, item, with_variables(item.text, part.arguments), begin, end))
        return found;
  for (const TraceItem& item : part.target.results)
    if (const auto found = typed_range(script, part, item, with_result(item.text), begin, end)) return found;
  return std::nullopt;
}

std::string argument_hint(const TraceScript::Part& part, std::string_view wrong) {
  const std::vector<std::string_view> known(part.arguments.begin(), part.arguments.end());
  const std::string near = nearest(wrong, known);
  if (!near.empty()) return fmt::format("did you mean `{}`?", near);
  if (known.empty()) return "the names of its arguments are not known";
  return fmt::format("its arguments are {}", join(part.arguments, ", "));
}

}  // namespace

source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script,
                             const std::vector<source::SourceId>& targets,
                             const std::vector<source::SourceId>& conditions, const source::Sources& sources) {
  const source::Span span = diagnostic.span;
  if (!span.valid() || sources[span.source].text != script.text) return diagnostic;
  for (size_t i = 0; i < script.parts.size(); ++i) {
    const TraceScript::Part& part = script.parts[i];
    if (span.begin < part.begin || span.begin >= part.end) continue;
    auto range = find_range(script, part, span.begin, span.end);
    source::SourceId typed = targets[i];
    for (size_t j = 0; j < part.conditions.size() && !range; ++j) {
      const TraceItem& condition = part.conditions[j];
      range =
          typed_range(script, part, condition, written_condition(condition.text, part.arguments), span.begin, span.end);
      if (range) typed = conditions[j];
    }
    const auto [begin, end] = range.value_or(std::pair(size_t{0}, part.target.place.size()));
    diagnostic.span = {typed, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
    diagnostic.notes.clear();  // they are about other places of the script
    if (diagnostic.id == "unknown-name")
      diagnostic.hint = argument_hint(part, std::string_view(sources[typed].text).substr(begin, end - begin));
    break;
  }
  return diagnostic;
}

}  // namespace espy::cli
