#include "source/diagnostic.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/strings.h"

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

// Returns the terminal columns of UTF-8 text, one per code point; wide and combining characters are not considered.
bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// A whole script can be one line: at most this many columns of it are shown, and this many before the span.
// A terminal with fewer columns shows as many as fit behind the number of the line.
constexpr size_t kMostColumns = 160;
constexpr size_t kLeastColumns = 30;
constexpr size_t kGutterColumns = 6 + 2 * 3;  // "123 | ", and two cuts

size_t shown_columns() {
  static const size_t kColumns = [] {
    winsize window = {};
    if (::isatty(STDERR_FILENO) != 1 || ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
      return kMostColumns;
    const size_t columns = window.ws_col;
    return std::clamp(columns - std::min(columns, kGutterColumns), kLeastColumns, kMostColumns);
  }();
  return kColumns;
}

constexpr std::string_view kCut = "...";

// The shown part of a line, and the position of the span in it, in bytes.
struct Shown {
  std::string text;
  size_t begin;
  size_t length;
};

// Returns the line; if it is long, the part around the span at `begin`, cut between characters.
Shown shown(std::string_view line, size_t begin, size_t length) {
  std::vector<size_t> starts;  // of each character
  for (size_t i = 0; i < line.size(); ++i) {
    if (i == 0 || starts_character(line[i])) starts.push_back(i);
  }
  const size_t columns = starts.size(), most = shown_columns(), before = most * 3 / 8;
  if (columns <= most) return {std::string(line), begin, length};
  starts.push_back(line.size());
  const auto column = static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), begin) - starts.begin());
  const size_t first = std::min(column - std::min(column, before), columns - most);
  const size_t last = first + most;
  std::string text(first == 0 ? "" : kCut);
  const size_t at = text.size() + begin - starts[first];
  text += line.substr(starts[first], starts[last] - starts[first]);
  if (last < columns) text += kCut;
  return {std::move(text), at, std::min(length, starts[last] - begin)};
}

// Returns the source line with the span underlined; a span over several lines up to the end of its first line.
std::string snippet(Span span, std::string_view hint, const Sources& sources) {
  const LineColumn place = sources.line_column(span.source, span.begin);
  const std::string_view whole = sources.line(span.source, place.line);
  const size_t begin = std::min<size_t>(place.column - 1, whole.size());
  const Shown line = shown(whole, begin, std::min<size_t>(span.end - span.begin, whole.size() - begin));
  const std::string before = printable(std::string_view(line.text).substr(0, line.begin));
  const std::string marked = printable(std::string_view(line.text).substr(line.begin, line.length));
  const std::string text = before + marked + printable(std::string_view(line.text).substr(line.begin + line.length));
  const auto width = std::max<ptrdiff_t>(1, std::count_if(marked.begin(), marked.end(), starts_character));
  std::string padding;  // tabs kept, so that the caret stands under its text
  for (const char c : before) {
    if (starts_character(c)) padding += c == '\t' ? '\t' : ' ';
  }
  const std::string number = fmt::format("{:>3}", place.line);
  const std::string gutter(number.size(), ' ');
  return fmt::format("{} | {}\n{} | {}^{}{}{}\n", number, text, gutter, padding,
                     std::string(static_cast<size_t>(width - 1), '~'), hint.empty() ? "" : " ", printable(hint));
}

std::string located(Span span, const Sources& sources) {
  if (!span.valid()) return "";
  const LineColumn place = sources.line_column(span.source, span.begin);
  return fmt::format("{}:{}:{}: ", printable(sources[span.source].name), place.line, place.column);
}

// Returns the chain of imports of the source of `span`, innermost first.
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

std::string render(const Diagnostic& d, const Sources& sources, const RenderStyle& render_style) {
  const Style s = style(d.severity);
  std::string out = located(d.span, sources);
  const std::string message = printable(d.message);
  out += render_style.is_colored ? fmt::format("{}{}:\033[0m {}", s.color, s.word, message)
                                 : fmt::format("{}: {}", s.word, message);
  if (!d.id.empty()) out += fmt::format(" [{}]", d.id);
  out += '\n';
  if (d.span.valid()) {
    out += snippet(d.span, d.hint, sources);
  } else if (!d.hint.empty()) {
    out += fmt::format("  hint: {}\n", printable(d.hint));
  }
  out += expansion_chain(d.span, sources);
  out += import_chain(d.span, sources);
  for (const Note& note : d.notes) {
    out += fmt::format("{}note: {}\n", located(note.span, sources), printable(note.message));
    if (note.span.valid()) out += snippet(note.span, "", sources);
  }
  return out;
}

std::string render(const Diagnostics& diagnostics, const Sources& sources, const RenderStyle& style) {
  constexpr size_t kMost = 20;
  std::string out;
  size_t errors = 0, warnings = 0;
  std::set<std::string> rendered;  // the same is said of the entry and of the return of a function
  for (const Diagnostic& d : diagnostics.all()) {
    const bool is_error = d.severity == Severity::kError;
    if (!is_error && !style.has_warnings) continue;
    size_t& count = is_error ? errors : warnings;
    const std::string text = count < kMost ? render(d, sources, style) : "";
    if (!text.empty() && !rendered.insert(text).second) continue;
    if (++count <= kMost) out += text;
  }
  const auto more = [](size_t count, std::string_view what) {
    return count <= kMost ? "" : fmt::format("{} more {}{}\n", count - kMost, what, count == kMost + 1 ? "" : "s");
  };
  return out + more(errors, "error") + more(warnings, "warning");
}

}  // namespace espy::source
