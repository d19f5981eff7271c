// A document, and positions in it as editors count them: lines, and UTF-16 code units in a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espy::lsp {

struct Position {  // 0-based
  uint32_t line = 0;
  uint32_t character = 0;
  bool operator==(const Position&) const = default;
};

class Text {
 public:
  explicit Text(std::string bytes);

  const std::string& bytes() const { return bytes_; }
  // Of the byte at `offset`. An offset beyond the text is that of its end.
  Position position(uint32_t offset) const;
  // The inverse. A position beyond the end of a line, or of the text, is that end.
  uint32_t offset(Position position) const;

 private:
  uint32_t line_end(uint32_t line) const;

  std::string bytes_;
  std::vector<uint32_t> line_starts_;
};

}  // namespace espy::lsp
