// Where text comes from, and places in it.
//
// In: the bytes of a script, an import, a header. Out: spans that every later stage carries along, and line and
// column for people. Nothing here interprets the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace espy::source {

using SourceId = Id<struct SourceTag>;
using ExpansionId = Id<struct ExpansionTag>;

// Bytes [begin, end) of one source. `expansion` says through which macro call the text came here, if any.
struct Span {
  SourceId source;
  uint32_t begin = 0;
  uint32_t end = 0;
  ExpansionId expansion = {};

  bool valid() const { return source.valid(); }
  bool operator==(const Span&) const = default;
};

// From the start of `a` to the end of `b`; both must lie in the same source.
Span join(Span a, Span b);

struct Source {
  std::string name;  // as the user named it: "exits.bt", "stdin"
  std::string text;
  std::vector<uint32_t> line_starts;
  Span imported_at = {};  // where another source asked for it; invalid for the script itself
};

// 1-based; columns count bytes.
struct LineColumn {
  uint32_t line = 0;
  uint32_t column = 0;
};

// A span as a program wants to be told of it. One over several lines ends where it begins.
struct Extent {
  std::string_view source;  // its name
  uint32_t line = 0;
  uint32_t begin_column = 0;
  uint32_t end_column = 0;  // behind its last byte
};

// One macro call: text inside the macro's body with this expansion was asked for at `call`.
struct Expansion {
  std::string macro;
  Span call;
};

// All sources of one run. Spans are meaningless without it.
class Sources {
 public:
  SourceId add(std::string name, std::string text, Span imported_at = {});
  ExpansionId add_expansion(std::string macro, Span call);

  const Source& operator[](SourceId id) const { return sources_[id]; }
  const Expansion& operator[](ExpansionId id) const { return expansions_[id]; }
  std::string_view text(Span span) const;
  LineColumn line_column(SourceId source, uint32_t offset) const;
  Extent extent(Span span) const;
  // The text of 1-based `line`, without its newline (\n or \r\n).
  std::string_view line(SourceId source, uint32_t line) const;

 private:
  Table<SourceId, Source> sources_;
  Table<ExpansionId, Expansion> expansions_;
};

}  // namespace espy::source
