// The index of a package (DWARF 5, 7.3.5; for DWARF 4 gcc.gnu.org/wiki/DebugFissionDWP): a header with the version and
// the numbers of columns, units and slots; a hash table of the ids of units and the rows of their pieces; the sections
// that the columns stand for; and for each row and column an offset, and then a size.
//
// The strings of all units are in one section. A .dwo file receives those that its unit refers to.
#include "symbols/dwarf/package.h"

#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"
#include "symbols/dwarf/split_file.h"

namespace espy::symbols::dwarf {

namespace {

constexpr uint32_t kVersion2 = 2;
constexpr uint32_t kVersion5 = 5;
constexpr uint32_t kMaxColumns = 16;
constexpr uint32_t kMaxUnits = 1 << 20;

std::string_view section_of_column(uint32_t version, uint32_t column) {
  switch (column) {
    case 1: return "info";
    case 3: return "abbrev";
    case 4: return "line";
    case 5: return version == kVersion2 ? "loc" : "loclists";
    case 6: return "str_offsets";
    case 8: return version == kVersion2 ? "" : "rnglists";
    default: return "";  // macros, and types in units of their own
  }
}

std::string section_name(std::string_view part) { return ".debug_" + std::string(part) + ".dwo"; }

// Returns the offsets of strings for a section with these strings alone, and that section.
std::pair<std::string, std::string> with_own_strings(std::string offsets, size_t header_bytes,
                                                     std::string_view strings) {
  std::unordered_map<uint64_t, uint32_t> moved;
  std::string own;
  for (size_t at = header_bytes; at + 4 <= offsets.size(); at += 4) {
    const uint64_t offset = load_le(offsets, at, 4);
    const auto [entry, is_new] = moved.try_emplace(offset, static_cast<uint32_t>(own.size()));
    // Corrupt offsets could share a long string.
    if (is_new && offset < strings.size() && own.size() / 2 < strings.size()) {
      ByteReader reader(strings.substr(offset));
      own += reader.take_string();
    }
    if (is_new) own += '\0';
    std::memcpy(offsets.data() + at, &entry->second, sizeof(entry->second));
  }
  return {std::move(offsets), std::move(own)};
}

}  // namespace

Result<Package> Package::open(const std::string& path) {
  Package out(TRY(ElfImage::open(path)));
  out.read_index();
  if (out.rows_.empty()) return fail(path + " is no package of debug information");
  return out;
}

void Package::read_index() {
  const std::string_view index = image_.section_bytes(".debug_cu_index");
  ByteReader reader(index);
  version_ = reader.take_le<uint32_t>() & 0xffff;  // 16 bits and two of padding since 5
  columns_ = reader.take_le<uint32_t>();
  const auto units = reader.take_le<uint32_t>(), slots = reader.take_le<uint32_t>();
  if ((version_ != kVersion2 && version_ != kVersion5) || columns_ > kMaxColumns || units > kMaxUnits) return;
  const std::string_view ids = reader.take_bytes(uint64_t{slots} * 8), rows = reader.take_bytes(uint64_t{slots} * 4);
  kinds_ = reader.take_bytes(uint64_t{columns_} * 4);
  const uint64_t table_bytes = uint64_t{units} * columns_ * 4;
  offsets_ = reader.take_bytes(table_bytes);
  sizes_ = reader.take_bytes(table_bytes);
  for (uint32_t slot = 0; reader.ok() && slot < slots && rows_.size() < units; ++slot) {
    const auto row = static_cast<uint32_t>(load_le(rows, uint64_t{slot} * 4, 4));  // from 1; 0: no unit
    if (row != 0 && row <= units) rows_.try_emplace(load_le(ids, uint64_t{slot} * 8), row - 1);
  }
}

// A section has one column, and so one piece.
std::vector<Package::Piece> Package::pieces_of(uint32_t row) const {
  std::vector<Piece> out;
  for (uint32_t column = 0; column < columns_; ++column) {
    const auto section = section_of_column(version_, static_cast<uint32_t>(load_le(kinds_, uint64_t{column} * 4, 4)));
    const uint64_t at = (uint64_t{row} * columns_ + column) * 4;
    const bool is_new = std::ranges::find(out, section, &Piece::section) == out.end();
    if (!section.empty() && is_new) out.push_back({section, load_le(offsets_, at, 4), load_le(sizes_, at, 4)});
  }
  return out;
}

std::string Package::bytes_of(const Piece& piece) const {
  const std::string_view all = image_.section_bytes(section_name(piece.section));
  if (piece.offset > all.size() || piece.size > all.size() - piece.offset) return {};
  return std::string(all.substr(piece.offset, piece.size));
}

std::string Package::file_of(const std::vector<Piece>& pieces) const {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const Piece& piece : pieces) {
    std::string bytes = bytes_of(piece);
    if (piece.section == "str_offsets") {
      constexpr size_t kHeaderBytes = 8;
      auto [offsets, strings] = with_own_strings(std::move(bytes), version_ == kVersion5 ? kHeaderBytes : 0,
                                                 image_.section_bytes(section_name("str")));
      bytes = std::move(offsets);
      sections.emplace_back(section_name("str"), std::move(strings));
    }
    sections.emplace_back(section_name(piece.section), std::move(bytes));
  }
  return make_elf(sections, image_.machine());
}

std::string Package::unit(uint64_t unit_id) const {
  const auto found = rows_.find(unit_id);
  return found == rows_.end() ? "" : file_of(pieces_of(found->second));
}

}  // namespace espy::symbols::dwarf
