// The notes of <sys/sdt.h>.
//
// A note has three addresses (of the probe, of the section .stapsdt.base at link time, of the semaphore or 0) and three
// strings. Prelinking moves the addresses of a file but does not change notes, so the difference between the address of
// .stapsdt.base and the one in the note is added to the others.
#include "symbols/usdt.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "symbols/elf_image.h"

namespace espy::symbols {

namespace {

constexpr uint32_t kNoteType = 3;
constexpr std::string_view kOwner{"stapsdt\0", 8};  // with its NUL

// Takes a field of a note without the padding to 4 bytes that follows it. The last field of a section may lack that.
std::string_view take_field(ByteReader& notes, uint64_t size_bytes) {
  const uint64_t padded_bytes = (size_bytes + 3) & ~uint64_t{3};
  return notes.take_bytes(std::min<uint64_t>(padded_bytes, notes.remaining_bytes())).substr(0, size_bytes);
}

// Returns nullopt if the description is truncated.
std::optional<UsdtLocation> read_note(const ElfImage& image, std::string_view description) {
  const size_t word_bytes = image.is_64bit() ? 8 : 4;
  ByteReader reader(description);
  UsdtLocation out;
  out.address = reader.take_le(word_bytes);
  const uint64_t linked_base = reader.take_le(word_bytes);
  uint64_t semaphore = reader.take_le(word_bytes);
  if (const auto base = image.section_address(".stapsdt.base"); base && linked_base != 0) {
    out.address += *base - linked_base;
    if (semaphore != 0) semaphore += *base - linked_base;
  }
  out.provider = reader.take_string();
  out.name = reader.take_string();
  out.arguments = reader.take_string();
  if (!reader.ok()) return std::nullopt;
  out.file_offset = image.offset_of_address(out.address).value_or(0);
  if (semaphore != 0) out.semaphore_file_offset = image.offset_of_address(semaphore).value_or(0);
  return out;
}

bool is_size(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789f") == std::string_view::npos;
}

// "%rax" -> "rax"; nullopt if it is not a register.
std::optional<std::string> register_name(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('%')) return std::nullopt;
  return std::string(text.substr(1));
}

// "-8", "sym", "sym+4", "-4+sym", "": adds numbers to the displacement and takes at most one symbol.
bool parse_displacement(std::string_view text, UsdtOperand& out) {
  while (!text.empty()) {
    const bool is_negative = text.starts_with('-');
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    const size_t end = text.find_first_of("+-");
    const std::string_view term = text.substr(0, end);
    text.remove_prefix(term.size());
    if (const auto number = parse_int(term)) {
      out.displacement += is_negative ? -*number : *number;
    } else if (!term.empty() && out.symbol.empty() && !is_negative && term.find_first_of("%:$ ") == term.npos) {
      out.symbol = term;
    } else {
      return false;
    }
  }
  return true;
}

// DISPLACEMENT or DISPLACEMENT(BASE,INDEX,SCALE)
bool parse_memory(std::string_view text, UsdtOperand& out) {
  out.kind = UsdtOperand::Kind::kMemory;
  const size_t open = text.find('(');
  if (!parse_displacement(text.substr(0, open), out)) return false;
  if (open == std::string_view::npos) return true;
  if (!text.ends_with(')')) return false;
  const std::vector<std::string_view> parts = split(text.substr(open + 1, text.size() - open - 2), ',');
  if (parts.size() > 3) return false;
  if (!trim(parts[0]).empty()) {
    const auto base = register_name(parts[0]);
    if (!base) return false;
    out.base = *base;
  }
  if (parts.size() > 1) {
    const auto index = register_name(parts[1]);
    if (!index) return false;
    out.index = *index;
  }
  const auto scale = parts.size() > 2 ? parse_int(trim(parts[2])) : 1;
  if (!scale || (*scale != 1 && *scale != 2 && *scale != 4 && *scale != 8)) return false;
  out.scale = static_cast<uint8_t>(*scale);
  return true;
}

}  // namespace

Result<std::vector<UsdtLocation>> read_usdt(const std::string& path) {
  const ElfImage image = TRY(ElfImage::open(path));
  std::vector<UsdtLocation> out;
  ByteReader notes(image.section_bytes(".note.stapsdt"));
  while (!notes.at_end()) {
    const auto owner_bytes = notes.take_le<uint32_t>();
    const auto description_bytes = notes.take_le<uint32_t>();
    const auto type = notes.take_le<uint32_t>();
    const std::string_view owner = take_field(notes, owner_bytes);
    const std::string_view description = take_field(notes, description_bytes);
    if (type != kNoteType || owner != kOwner) continue;
    if (auto location = read_note(image, description)) out.push_back(std::move(*location));
  }
  return out;
}

std::vector<std::string> split_usdt_arguments(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    const size_t at = word.find('@');
    if (out.empty() || (at != std::string_view::npos && is_size(word.substr(0, at)))) {
      out.emplace_back(word);
    } else {
      out.back() += ' ';
      out.back() += word;
    }
  }
  return out;
}

std::optional<UsdtOperand> parse_usdt_operand(std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  UsdtOperand out;
  std::string_view size_text = text.substr(0, at);
  if (size_text.ends_with('f')) size_text.remove_suffix(1);
  const auto size = parse_int(size_text);
  const int64_t bytes = size ? std::abs(*size) : 0;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return std::nullopt;
  out.size_bytes = static_cast<uint8_t>(bytes);
  out.is_signed = *size < 0;
  const std::string_view operand = trim(text.substr(at + 1));
  if (const auto name = register_name(operand)) {
    if (name->find(':') != std::string::npos) return std::nullopt;  // %fs:8
    out.kind = UsdtOperand::Kind::kRegister;
    out.base = *name;
    return out;
  }
  if (operand.starts_with('$')) {
    const auto constant = parse_int(operand.substr(1));
    if (!constant) return std::nullopt;
    out.displacement = *constant;
    return out;
  }
  return parse_memory(operand, out) ? std::optional(out) : std::nullopt;
}

}  // namespace espy::symbols
