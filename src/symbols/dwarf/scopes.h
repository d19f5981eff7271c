// Which variables are visible at an address, and the lines of the code there. Inside this folder only.
#pragma once

#include <string>
#include <vector>

#include "symbols/debug_info.h"
#include "symbols/dwarf/location.h"

namespace espy::symbols::dwarf {

struct VisibleVariable {
  Dwarf_Die die;
  std::string name;
  bool is_parameter = false;
  std::vector<Range> scope;  // code of the block that declares it
};

// The function, then what lies within it around the address: blocks and inlined copies, outermost first.
std::vector<Dwarf_Die> scopes_at(const Dwarf_Die& function, uint64_t address);
// Variables and parameters that one of these declares, also those of which a copy has nothing left. Parameters may be
// without a name.
std::vector<VisibleVariable> variables_of(const Dwarf_Die& scope);

// Where a function or an inlined copy begins; nothing where it has no code.
std::optional<uint64_t> entry_of(const Dwarf_Die& scope);

// What a site is in, by the address; nothing where no function is described there.
std::optional<Site> site_at(File& file, uint64_t address);

// A row of the line table at which a statement begins.
struct Row {
  uint64_t address = 0;
  std::string_view file;  // as the compiler knew it; lives as long as the File
  uint32_t line = 0;
  uint32_t column = 0;
};
std::vector<Row> statement_rows(const Dwarf_Die& unit);
std::vector<Row> statement_rows_in(File& file, const Site& site);  // of its function

// A place in the source; "" and 0 where nothing tells. The name lives as long as the File.
struct SourceLine {
  std::string_view file = {};
  uint32_t line = 0;
};
// Of the code at an address of the unit.
SourceLine line_at(const Dwarf_Die& unit, uint64_t address);
// Where the call stood of which an inlined copy was made.
SourceLine call_line(const Dwarf_Die& inlined);

// Of rows of one function those to stop at: for each line the first in each block or inlined copy.
std::vector<Row> first_of_blocks(const Dwarf_Die& function, std::vector<Row> rows);

// Where in its function and its file a variable can be read.
ReadableLines readable_lines(File& file, const kernel::Arch& arch, const Site& site, const VisibleVariable& variable);

}  // namespace espy::symbols::dwarf
