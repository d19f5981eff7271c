// The size of line tables, before libdw reads them: it makes a hundred bytes of each row, which takes a byte in the
// file. Internal to dwarf/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace espy::symbols::dwarf {

struct LineTableSize {
  uint64_t header_bytes = 0;  // of the names of directories and files, mostly
  uint64_t rows = 0;
};

// Returns the size of the line table at an offset of .debug_line (DWARF 2 to 5, 6.2); nullopt if it is malformed or of
// another version.
std::optional<LineTableSize> line_table_size(std::string_view section, uint64_t offset);

// Returns how many bytes of the section that looks at: those of the table as its header says, up to the end.
uint64_t line_table_bytes(std::string_view section, uint64_t offset);

}  // namespace espy::symbols::dwarf
