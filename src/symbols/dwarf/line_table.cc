#include "symbols/dwarf/line_table.h"

#include <dwarf.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace espy::symbols::dwarf {

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
