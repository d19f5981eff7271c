// source: the texts of scripts, spans in them, and diagnostics about them.
//
// Holds the text of a script, its imports and headers. Every stage refers to text by spans; this module converts them
// to lines and columns. It does not interpret the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace espy::source {

using SourceId = Id<struct SourceTag>;
using ExpansionId = Id<struct ExpansionTag>;

// Bytes [begin, end) of one source. `expansion` is the macro call that the text results from; invalid if none.
struct Span {
  SourceId source;
  uint32_t begin = 0;
  uint32_t end = 0;
  ExpansionId expansion = {};

  bool valid() const { return source.valid(); }
  bool operator==(const Span&) const = default;
};

// Returns the smallest span that covers both. An invalid span is ignored; requires the same source otherwise.
Span join(Span a, Span b);

struct Source {
  std::string name;  // as the user named it: "exits.bt", "stdin"
  std::string text;
  std::vector<uint32_t> line_starts;
  Span imported_at = {};  // the import directive; invalid for the script itself
};

// 1-based; columns count bytes.
struct LineColumn {
  uint32_t line = 0;
  uint32_t column = 0;
};

// A span for machine-readable output. A span over several lines is cut at its beginning.
struct Extent {
  std::string_view source;  // name of the source
  uint32_t line = 0;
  uint32_t begin_column = 0;
  uint32_t end_column = 0;  // one past the last byte
};

// One macro call: the text of the macro's body with this expansion results from `call`.
struct Expansion {
  std::string macro;
  Span call;
};

// All sources of one run, to which spans refer.
class Sources {
 public:
  SourceId add(std::string name, std::string text, Span imported_at = {});
  ExpansionId add_expansion(std::string macro, Span call);

  const Source& operator[](SourceId id) const { return sources_[id]; }
  const Expansion& operator[](ExpansionId id) const { return expansions_[id]; }
  std::string_view text(Span span) const;
  LineColumn line_column(SourceId source, uint32_t offset) const;
  Extent extent(Span span) const;
  // Returns the text of a line (1-based) without its newline (\n or \r\n).
  std::string_view line(SourceId source, uint32_t line) const;

 private:
  Table<SourceId, Source> sources_;
  Table<ExpansionId, Expansion> expansions_;
};

}  // namespace espy::source
