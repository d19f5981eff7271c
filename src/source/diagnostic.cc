#include "source/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

namespace espy::source {

Diagnostic& Diagnostics::error(std::string_view id, Span span, std::string message, std::string hint) {
  all_.push_back({Severity::kError, id, span, std::move(message), std::move(hint)});
  return all_.back();
}

Diagnostic& Diagnostics::warning(std::string_view id, Span span, std::string message, std::string hint) {
  all_.push_back({Severity::kWarning, id, span, std::move(message), std::move(hint)});
  return all_.back();
}

bool Diagnostics::has_errors() const {
  return std::any_of(all_.begin(), all_.end(), [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

namespace {

struct Style {
  std::string_view word;
  std::string_view color;
};

Style style(Severity severity) {
  switch (severity) {
    case Severity::kError: return {"error", "\033[1;31m"};
    case Severity::kWarning: return {"warning", "\033[1;35m"};
    case Severity::kNote: return {"note", "\033[1;36m"};
  }
  UNREACHABLE("severity");
}

// Columns of UTF-8 text on a terminal: one for each character, wide and combining ones aside.
bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// The user's line with the span underlined. A span over several lines is underlined to the end of its first.
std::string snippet(Span span, std::string_view hint, const Sources& sources) {
  const Place place = sources.place(span.source, span.begin);
  const std::string_view line = sources.line(span.source, place.line);
  const size_t begin = std::min<size_t>(place.column - 1, line.size());
  const size_t length = std::min<size_t>(span.end - span.begin, line.size() - begin);
  const std::string_view marked = line.substr(begin, length);
  const auto width = std::max<ptrdiff_t>(1, std::count_if(marked.begin(), marked.end(), starts_character));
  std::string padding;  // tabs kept, so that the caret stands under its text
  for (const char c : line.substr(0, begin)) {
    if (starts_character(c)) padding += c == '\t' ? '\t' : ' ';
  }
  const std::string number = fmt::format("{:>3}", place.line);
  const std::string gutter(number.size(), ' ');
  return fmt::format("{} | {}\n{} | {}^{}{}{}\n", number, line, gutter, padding,
                     std::string(static_cast<size_t>(width - 1), '~'), hint.empty() ? "" : " ", hint);
}

std::string located(Span span, const Sources& sources) {
  if (!span.valid()) return "";
  const Place place = sources.place(span.source, span.begin);
  return fmt::format("{}:{}:{}: ", sources[span.source].name, place.line, place.column);
}

// Through which imports the source of `span` came, innermost first.
std::string import_chain(Span span, const Sources& sources) {
  std::string out;
  for (Span at = span; at.valid(); at = sources[at.source].imported_at) {
    const Span& import = sources[at.source].imported_at;
    if (import.valid()) out += fmt::format("{}note: imported here\n", located(import, sources));
  }
  return out;
}

}  // namespace

std::string expansion_chain(Span span, const Sources& sources) {
  std::string out;
  while (span.valid() && span.expansion.valid()) {
    const Expansion& expansion = sources[span.expansion];
    out += fmt::format("{}note: expanded from `{}`\n", located(expansion.call, sources), expansion.macro);
    out += snippet(expansion.call, "", sources);
    span = expansion.call;
  }
  return out;
}

std::string excerpt(Span span, const Sources& sources) {
  return snippet(span, "", sources) + expansion_chain(span, sources);
}

std::string render(const Diagnostic& d, const Sources& sources, bool color) {
  const Style s = style(d.severity);
  std::string out = located(d.span, sources);
  out += color ? fmt::format("{}{}:\033[0m {}", s.color, s.word, d.message) : fmt::format("{}: {}", s.word, d.message);
  if (!d.id.empty()) out += fmt::format(" [{}]", d.id);
  out += '\n';
  if (d.span.valid()) {
    out += snippet(d.span, d.hint, sources);
  } else if (!d.hint.empty()) {
    out += fmt::format("  hint: {}\n", d.hint);
  }
  out += expansion_chain(d.span, sources);
  out += import_chain(d.span, sources);
  for (const Note& note : d.notes) {
    out += fmt::format("{}note: {}\n", located(note.span, sources), note.message);
    if (note.span.valid()) out += snippet(note.span, "", sources);
  }
  return out;
}

std::string render(const Diagnostics& diagnostics, const Sources& sources, bool color) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) out += render(d, sources, color);
  return out;
}

}  // namespace espy::source
