#include "symbols/dwarf/scopes.h"

#include <dwarf.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/byte_reader.h"
#include "base/limits.h"

namespace espy::symbols::dwarf {

namespace {

constexpr int kMaxDepth = 64;  // recordings have as many inlined functions of an address (recording::kMaxFrames)
constexpr size_t kMaxRanges = 1 << 18;  // of all blocks of a function, which can share them
constexpr size_t kMaxShownRanges = 6;

bool is_variable(int variable_tag) {
  return variable_tag == DW_TAG_variable || variable_tag == DW_TAG_formal_parameter;
}

bool is_block(const Dwarf_Die& die) {
  switch (tag(die)) {
    case DW_TAG_lexical_block:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_try_block:
    case DW_TAG_catch_block: return true;
    default: return false;
  }
}

// Paths of malformed debug information can have megabytes, and thousands of rows.
std::string_view file_name(const char* path) {
  return path == nullptr ? std::string_view() : std::string_view(path, ::strnlen(path, PATH_MAX));
}

}  // namespace

void Scopes::read(size_t block) {
  if (blocks_[block].is_read) return;
  std::vector<Code> inner;
  std::vector<Code> entries;  // of inlined functions, one byte each
  std::vector<Block> found;
  size_t range_count = range_count_;
  for (const Dwarf_Die& child : children(blocks_[block].die)) {
    if (!is_block(child) || range_count > kMaxRanges) continue;
    const RangeList code = range_list_of(child);
    for (const Range& range : code.ranges) inner.push_back({range, blocks_.size() + found.size()});
    const std::optional<uint64_t> entry =
        tag(child) == DW_TAG_inlined_subroutine && !code.ranges.empty() ? entry_of(child) : std::nullopt;
    if (entry) entries.push_back({{*entry, *entry + 1}, blocks_.size() + found.size()});
    range_count += code.steps + 1;
    found.push_back({child});
  }
  const auto begin = [](const Code& code) { return code.range.low; };
  std::ranges::stable_sort(inner, {}, begin);
  // GCC 16 lets an inlined function begin at an instruction of its caller, with an empty range there. Without its
  // entry, the first statements of two copies were one statement of the caller.
  std::erase_if(entries, [&](const Code& entry) {
    const auto after = std::ranges::upper_bound(inner, entry.range.low, {}, begin);
    return after != inner.begin() && std::prev(after)->range.contains(entry.range.low);
  });
  inner.insert(inner.end(), entries.begin(), entries.end());
  std::ranges::stable_sort(inner, {}, begin);
  blocks_.insert(blocks_.end(), found.begin(), found.end());
  range_count_ = range_count;
  blocks_[block].inner = std::move(inner);
  blocks_[block].is_read = true;
}

std::vector<Scopes::Code>::const_iterator Scopes::first_behind(const Block& block, uint64_t address) {
  return std::ranges::upper_bound(block.inner, address, {}, [](const Code& code) { return code.range.low; });
}

bool Scopes::has_read(uint64_t address) const {
  size_t block = 0;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (!blocks_[block].is_read) return false;
    const auto after = first_behind(blocks_[block], address);
    if (after == blocks_[block].inner.begin() || !std::prev(after)->range.contains(address)) break;
    block = std::prev(after)->block;
  }
  return true;
}

// Line tables have many rows for one block.
const std::vector<Dwarf_Die>& Scopes::at(uint64_t address) {
  if (found_for_.contains(address)) return found_;
  std::vector<Dwarf_Die> found = {blocks_[0].die};
  Range found_for = {0, UINT64_MAX};
  size_t block = 0;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    read(block);
    const std::vector<Code>& inner = blocks_[block].inner;
    const auto after = first_behind(blocks_[block], address);
    if (after != inner.end()) found_for.high = std::min(found_for.high, after->range.low);
    if (after == inner.begin()) break;
    const Range& before = std::prev(after)->range;
    const bool is_inside = before.contains(address);
    found_for.low = std::max(found_for.low, is_inside ? before.low : before.high);
    if (!is_inside) break;
    found_for.high = std::min(found_for.high, before.high);
    block = std::prev(after)->block;
    found.push_back(blocks_[block].die);
  }
  found_ = std::move(found);
  found_for_ = found_for;
  return found_;
}

std::vector<VisibleVariable> variables_of(const Dwarf_Die& scope) {
  std::vector<VisibleVariable> out;
  const auto code = std::make_shared<const SortedRanges>(ranges_of(scope));
  std::set<std::string_view> seen;
  const auto add = [&](const Dwarf_Die& from, bool is_pack, const auto& add_children) -> void {
    for (const Dwarf_Die& child : children(from)) {
      if (tag(child) == DW_TAG_GNU_formal_parameter_pack && !is_pack) add_children(child, true, add_children);
      const std::string_view name = name_of(child);
      const bool is_parameter = tag(child) == DW_TAG_formal_parameter;
      if (!is_variable(tag(child)) || (name.empty() && !is_parameter) || flag(child, DW_AT_declaration)) continue;
      if (seen.insert(name).second || is_parameter) out.push_back({child, std::string(name), is_parameter, code});
    }
  };
  add(scope, false, add);
  const auto original = reference(scope, DW_AT_abstract_origin);
  if (!original) return out;
  // Variables that the instance does not repeat; it repeats all parameters.
  for (const Dwarf_Die& child : children(*original)) {
    const std::string_view name = name_of(child);
    if (is_variable(tag(child)) && !name.empty() && seen.insert(name).second)
      out.push_back({child, std::string(name), tag(child) == DW_TAG_formal_parameter, code});
  }
  return out;
}

std::optional<uint64_t> entry_of(const Dwarf_Die& scope) {
  for (const unsigned name : {DW_AT_entry_pc, DW_AT_low_pc}) {
    std::optional<Dwarf_Attribute> found = own_attribute(scope, name);
    Dwarf_Addr address = 0;
    Dwarf_Word distance = 0;
    if (found && dwarf_formaddr(&*found, &address) == 0) return address;
    // DWARF 5: an offset from the beginning of the code.
    const std::optional<Range> first = found ? first_range(scope) : std::nullopt;
    if (first && dwarf_formudata(&*found, &distance) == 0) return first->low + distance;
  }
  const std::optional<Range> first = first_range(scope);
  return first ? std::optional(first->low) : std::nullopt;
}

std::optional<Site> site_at(File& file, uint64_t address) {
  const auto function = file.function_at(address);
  if (!function) return std::nullopt;
  return Site{address, function->die, entry_of(function->die).value_or(function->range.low)};
}

// ---- Lines

const void* line_table(File& file, const Dwarf_Die& unit) {
  if (!file.has_bounded_lines(unit)) return nullptr;
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  return dwarf_getsrclines(const_cast<Dwarf_Die*>(&unit), &lines, &count) == 0 ? lines : nullptr;
}

std::vector<Row> statement_rows(File& file, const Dwarf_Die& unit) {
  std::vector<Row> out;
  if (!file.has_bounded_lines(unit)) return out;
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  if (dwarf_getsrclines(const_cast<Dwarf_Die*>(&unit), &lines, &count) != 0) return out;
  for (size_t i = 0; i < count; ++i) {
    Dwarf_Line* line = dwarf_onesrcline(lines, i);
    Row row;
    int number = 0, column = 0;
    bool begins = false, ends = false;
    dwarf_linebeginstatement(line, &begins);
    dwarf_lineendsequence(line, &ends);
    dwarf_lineno(line, &number);
    dwarf_linecol(line, &column);
    dwarf_lineaddr(line, &row.address);
    const char* name = dwarf_linesrc(line, nullptr, nullptr);
    if (!begins || ends || number <= 0 || row.address == 0 || name == nullptr) continue;
    // Most rows are of the file of the row before them.
    if (out.empty() || out.back().file.data() != name)
      row.file = file_name(name);
    else
      row.file = out.back().file;
    row.line = static_cast<uint32_t>(number);
    row.column = static_cast<uint32_t>(column);
    out.push_back(row);
  }
  return out;
}

std::vector<Row> statement_rows_in(File& file, const Site& site) {
  const Unit* unit = file.unit_at(site.address);
  if (unit == nullptr) return {};
  std::vector<Row> rows = statement_rows(file, unit->die);
  const SortedRanges code(ranges_of(site.function));
  std::erase_if(rows, [&](const Row& row) { return !code.contains(row.address); });
  return rows;
}

std::vector<Row> breakpoint_rows(Scopes& scopes, std::vector<Row> rows) {
  std::ranges::stable_sort(rows, {}, &Row::address);
  std::set<std::tuple<std::string_view, uint32_t, const void*>> seen;
  std::vector<Row> out;
  for (const Row& row : rows)
    if (seen.emplace(row.file, row.line, scopes.at(row.address).back().addr).second) out.push_back(row);
  return out;
}

namespace {

// Returns the source file that an attribute refers to; "" if unknown. (dwarf_decl_file crashes on units without files.)
std::string_view file_by(File& file, const Dwarf_Die& die, unsigned attribute_name) {
  const std::optional<uint64_t> index = number(die, attribute_name);
  std::optional<Dwarf_Die> unit = unit_of(die);
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (!index || !unit || !file.has_bounded_lines(*unit) || dwarf_getsrcfiles(&*unit, &files, &count) != 0 ||
      *index >= count)
    return {};
  return file_name(dwarf_filesrc(files, *index, nullptr, nullptr));
}

// Formats the lines whose value is true as "lines 12-15, 18". A range only spans lines that are in the map.
std::string format_lines(const std::map<uint32_t, bool>& lines) {
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  bool is_open = false;
  for (const auto& [line, is_listed] : lines) {
    if (is_listed && is_open) ranges.back().second = line;
    if (is_listed && !is_open) ranges.emplace_back(line, line);
    is_open = is_listed;
  }
  std::string out;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (i == kMaxShownRanges) return out + ", ...";
    const auto [first, last] = ranges[i];
    out += out.empty() ? (ranges.size() == 1 && first == last ? "line " : "lines ") : ", ";
    out += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
  }
  return out;
}

}  // namespace

SourceLine line_at(File& file, const Dwarf_Die& unit, uint64_t address) {
  if (!file.has_bounded_lines(unit)) return {};
  Dwarf_Line* line = dwarf_getsrc_die(const_cast<Dwarf_Die*>(&unit), address);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) return {};
  return {file_name(dwarf_linesrc(line, nullptr, nullptr)), static_cast<uint32_t>(number)};
}

SourceLine call_line(File& file, const Dwarf_Die& inlined) {
  const std::string_view name = file_by(file, inlined, DW_AT_call_file);
  const std::optional<uint64_t> line = number(inlined, DW_AT_call_line);
  if (name.empty() || !line) return {};
  return {name, static_cast<uint32_t>(*line)};
}

namespace {

// The lines of statements: whether the variable is readable. Nullopt if `limit` has not as many steps left.
std::optional<std::map<uint32_t, bool>> lines_of(File& file, const kernel::Arch& arch, const Site& site,
                                                 const VisibleVariable& variable, std::string_view declared_in,
                                                 const std::vector<Row>& rows, HintLimit& limit) {
  const std::vector<Range> list = described_ranges(variable.die);
  const SortedRanges described(list);
  std::map<uint32_t, bool> lines;
  for (const Row& row : rows) {
    if (list.empty() || (!declared_in.empty() && row.file != declared_in)) continue;
    bool& is_readable = lines[row.line];
    if (is_readable || !variable.scope->contains(row.address) || !described.contains(row.address)) continue;
    const LocateResult found = locate(file, arch, variable.die, {row.address, site.function, site.entry});
    const size_t steps = list.size() + found.steps;
    if (steps > limit.steps) return std::nullopt;
    limit.steps -= steps;
    is_readable = found.place && found.why.empty() && !(row.address == site.entry && found.is_frame && !found.is_list);
  }
  return lines;
}

}  // namespace

ReadableLines readable_lines(File& file, const kernel::Arch& arch, const Site& site, const VisibleVariable& variable,
                             const std::vector<Row>& rows, HintLimit& limit) {
  if (limit.cpu_time <= limit.cpu_time.zero()) return {};
  const auto begin = thread_cpu_time();
  const std::string_view declared_in = file_by(file, variable.die, DW_AT_decl_file);
  std::optional<std::map<uint32_t, bool>> lines;
  try {
    const TimeLimit time(limit.cpu_time);
    lines = lines_of(file, arch, site, variable, declared_in, rows, limit);
  } catch (const TookTooLong&) {
    limit.cpu_time = {};
  }
  limit.cpu_time -= thread_cpu_time() - begin;
  if (!lines) return {};
  const auto first = std::ranges::find_if(*lines, [](const auto& line) { return line.second; });
  if (first == lines->end() || declared_in.empty()) return {};
  return {format_lines(*lines), std::string(declared_in), first->first};
}

namespace {

// Whether an extended opcode has the operands that it should have: libdw (0.188) ignores the size of those it knows.
bool has_its_size(std::string_view body) {
  ByteReader reader(body);
  const auto opcode = reader.take_le<uint8_t>();
  if (opcode == DW_LNE_set_address) return body.size() == 1 + 4 || body.size() == 1 + 8;
  if (opcode == DW_LNE_define_file) reader.take_string();
  const int numbers = opcode == DW_LNE_define_file ? 3 : opcode == DW_LNE_set_discriminator ? 1 : 0;
  for (int i = 0; i < numbers; ++i) reader.take_uleb128();
  const bool is_known = opcode == DW_LNE_end_sequence || numbers > 0;
  return reader.ok() && (!is_known || reader.at_end());
}

// Returns how many rows the program appends; nullopt if it is malformed. `operands`: the numbers of operands of the
// opcodes from 1 on.
std::optional<uint64_t> count_rows(ByteReader program, std::string_view operands) {
  constexpr uint8_t kMaxExtendedBytes = 127;  // libdw reads one byte of the size
  uint64_t rows = 0;
  while (!program.at_end()) {
    const auto opcode = program.take_le<uint8_t>();
    if (opcode > operands.size()) {  // special
      ++rows;
    } else if (opcode == 0) {  // extended
      const auto size_bytes = program.take_le<uint8_t>();
      const std::string_view body = program.take_bytes(size_bytes);
      if (body.empty() || size_bytes > kMaxExtendedBytes || !has_its_size(body)) return std::nullopt;
      rows += static_cast<uint8_t>(body[0]) == DW_LNE_end_sequence;
    } else if (opcode == DW_LNS_fixed_advance_pc) {
      program.take_le<uint16_t>();
    } else {
      rows += opcode == DW_LNS_copy;
      for (auto left = static_cast<uint8_t>(operands[opcode - 1]); left > 0; --left) program.take_uleb128();
    }
  }
  return rows;
}

struct Length {
  uint64_t bytes = 0;  // of what follows
  size_t offset_bytes = 4;
};

Length take_length(ByteReader& reader) {
  const auto length = reader.take_le<uint32_t>();
  if (length != UINT32_MAX) return {length};
  return {reader.take_le<uint64_t>(), 8};
}

}  // namespace

uint64_t line_table_bytes(std::string_view section, uint64_t offset) {
  if (offset > section.size()) return 0;
  ByteReader reader(section.substr(offset));
  return std::min<uint64_t>(take_length(reader).bytes, reader.remaining_bytes());
}

std::optional<LineTableSize> line_table_size(std::string_view section, uint64_t offset) {
  if (offset > section.size()) return std::nullopt;
  ByteReader reader(section.substr(offset));
  const auto [length, offset_bytes] = take_length(reader);
  ByteReader table(reader.take_bytes(length));
  const auto version = table.take_le<uint16_t>();
  if (version >= 5) table.take_bytes(2);  // sizes of addresses and of segment selectors
  const uint64_t header_bytes = table.take_le(offset_bytes);
  ByteReader header(table.take_bytes(header_bytes));
  // The lengths of instructions, default_is_stmt, line_base and line_range.
  header.take_bytes(version >= 4 ? 5 : 4);
  const auto opcode_base = header.take_le<uint8_t>();
  if (opcode_base == 0) return std::nullopt;
  const std::string_view operands = header.take_bytes(opcode_base - 1U);
  if (version < 2 || version > 5 || !reader.ok() || !table.ok() || !header.ok()) return std::nullopt;
  const auto rows = count_rows(ByteReader(table.take_bytes(table.remaining_bytes())), operands);
  return rows ? std::optional(LineTableSize{header_bytes, *rows}) : std::nullopt;
}

}  // namespace espy::symbols::dwarf
