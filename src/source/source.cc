#include "source/source.h"

#include <algorithm>

namespace espy::source {

Span join(Span a, Span b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  CHECK(a.source == b.source);
  return Span{a.source, std::min(a.begin, b.begin), std::max(a.end, b.end), a.expansion};
}

SourceId Sources::add(std::string name, std::string text, Span imported_at) {
  Source source{std::move(name), std::move(text), {0}, imported_at};
  for (uint32_t i = 0; i < source.text.size(); ++i) {
    if (source.text[i] == '\n') source.line_starts.push_back(i + 1);
  }
  return sources_.add(std::move(source));
}

ExpansionId Sources::add_expansion(std::string macro, Span call) {
  return expansions_.add(Expansion{std::move(macro), call});
}

std::string_view Sources::text(Span span) const {
  return std::string_view(sources_[span.source].text).substr(span.begin, span.end - span.begin);
}

LineColumn Sources::line_column(SourceId source, uint32_t offset) const {
  const auto& starts = sources_[source].line_starts;
  const auto after = std::upper_bound(starts.begin(), starts.end(), offset);
  const auto line = static_cast<uint32_t>(after - starts.begin());
  return LineColumn{line, offset - starts[line - 1] + 1};
}

Extent Sources::extent(Span span) const {
  const LineColumn begin = line_column(span.source, span.begin);
  const LineColumn end = line_column(span.source, span.end);
  return {sources_[span.source].name, begin.line, begin.column, end.line == begin.line ? end.column : begin.column};
}

std::string_view Sources::line(SourceId source, uint32_t line) const {
  const Source& s = sources_[source];
  CHECK(line >= 1 && line <= s.line_starts.size());
  const uint32_t begin = s.line_starts[line - 1];
  const size_t newline = s.text.find('\n', begin);
  size_t end = newline == std::string::npos ? s.text.size() : newline;
  if (end > begin && s.text[end - 1] == '\r') --end;
  return std::string_view(s.text).substr(begin, end - begin);
}

}  // namespace espy::source
