// The variables in scope at an address, and the size of line tables. Internal to dwarf/.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/debug_info.h"
#include "symbols/dwarf/location.h"

namespace espy::symbols::dwarf {

// ---- The variables in scope at an address, and the line table. Internal to dwarf/.

struct VisibleVariable {
  Dwarf_Die die;
  std::string name;
  bool is_parameter = false;
  std::shared_ptr<const SortedRanges> scope;  // code of the block that declares it
};

// The blocks and inlined instances of a function. Reads each at most once.
class Scopes {
 public:
  explicit Scopes(const Dwarf_Die& function) { blocks_.push_back({function}); }
  // Returns the function and the blocks and inlined instances in it that contain the address, outermost first. Valid
  // until the next call.
  const std::vector<Dwarf_Die>& at(uint64_t address);
  // Whether at() reads nothing for the address.
  bool has_read(uint64_t address) const;
  // Returns how much has been read, in blocks and ranges of code.
  size_t size() const { return blocks_.size() + range_count_; }

 private:
  struct Code {
    Range range;
    size_t block = 0;  // in blocks_
  };
  struct Block {
    Dwarf_Die die;
    bool is_read = false;
    std::vector<Code> inner;  // sorted by address
  };
  void read(size_t block);
  static std::vector<Code>::const_iterator first_behind(const Block& block, uint64_t address);

  std::vector<Block> blocks_;
  size_t range_count_ = 0;
  std::vector<Dwarf_Die> found_;  // by the last look-up,
  Range found_for_;               // and the addresses for which it holds
};

// Returns the variables and parameters that a scope declares, including variables of its abstract origin that an
// instance does not repeat. Parameters can be unnamed.
std::vector<VisibleVariable> variables_of(const Dwarf_Die& scope);

// Returns the entry address of a function or an inlined instance; nullopt if it has no code.
std::optional<uint64_t> entry_of(const Dwarf_Die& scope);

// nullopt if no function with code at the address is described.
std::optional<Site> site_at(File& file, uint64_t address);

// A row of the line table that is marked as the beginning of a statement.
struct Row {
  uint64_t address = 0;
  std::string_view file;  // valid for the life of the File
  uint32_t line = 0;
  uint32_t column = 0;
};
std::vector<Row> statement_rows(File& file, const Dwarf_Die& unit);
// Returns what identifies the line table of a unit, which units can share; null if it has none.
const void* line_table(File& file, const Dwarf_Die& unit);
std::vector<Row> statement_rows_in(File& file, const Site& site);  // of the function of the site

// A line of the source; "" and 0 if unknown. The name is valid for the life of the File.
struct SourceLine {
  std::string_view file = {};
  uint32_t line = 0;
};
// Returns the line of the code at an address of the unit.
SourceLine line_at(File& file, const Dwarf_Die& unit, uint64_t address);
// Returns the line of the call that an inlined instance replaces.
SourceLine call_line(File& file, const Dwarf_Die& inlined);

// Selects the rows of a function for breakpoints: for each line, the first in each block or inlined instance.
std::vector<Row> breakpoint_rows(Scopes& scopes, std::vector<Row> rows);

// How much may still be done for the readable lines of the variables of a file. They are hints.
struct HintLimit {
  size_t steps = 1 << 25;  // through location lists and expressions
  std::chrono::nanoseconds cpu_time = std::chrono::seconds(1);
};

// Returns the lines, in the function and the file that declare a variable, at which it can be read; none if that takes
// more than `limit` has left. `rows`: the breakpoint_rows of the function.
ReadableLines readable_lines(File& file, const kernel::Arch& arch, const Site& site, const VisibleVariable& variable,
                             const std::vector<Row>& rows, HintLimit& limit);

// ---- The size of line tables, before libdw reads them: it makes a hundred bytes of each row, which takes a byte in
// the file. Internal to dwarf/.

struct LineTableSize {
  uint64_t header_bytes = 0;  // of the names of directories and files, mostly
  uint64_t rows = 0;
};

// Returns the size of the line table at an offset of .debug_line (DWARF 2 to 5, 6.2); nullopt if it is malformed or of
// another version.
std::optional<LineTableSize> line_table_size(std::string_view section, uint64_t offset);

// Returns how many bytes max_rows() inspects: the length of the table from its header, up to the end of the section.
uint64_t line_table_bytes(std::string_view section, uint64_t offset);

}  // namespace espy::symbols::dwarf
