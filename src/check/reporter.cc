#include "check/reporter.h"

#include <utility>

namespace espy::check {

bool Reporter::is_new(std::string_view id, Span span) {
  return reported_.emplace(span.source.index, span.begin, span.end, span.expansion.index, std::string(id)).second;
}

void Reporter::error(std::string_view id, Span span, std::string message, std::string hint) {
  error_with_note(id, span, std::move(message), std::move(hint), {});
}

void Reporter::error_with_note(std::string_view id, Span span, std::string message, std::string hint,
                               source::Note note) {
  if (is_muted_) return;
  ++error_count_;
  if (!round_.is_final || !is_new(id, span)) return;
  source::Diagnostic& added = diagnostics_.error(id, span, std::move(message), std::move(hint));
  if (note.span.valid()) added.notes.push_back(std::move(note));
}

void Reporter::warning(std::string_view id, Span span, std::string message, std::string hint) {
  if (!is_muted_ && round_.is_final && is_new(id, span))
    diagnostics_.warning(id, span, std::move(message), std::move(hint));
}

}  // namespace espy::check
