// The notes of <sys/sdt.h>.
//
// A note has three addresses (of the probe, of the section .stapsdt.base at link time, of the semaphore or 0) and three
// strings. Prelinking moves the addresses of a file but does not change notes, so the difference between the address of
// .stapsdt.base and the one in the note is added to the others.
#include "symbols/usdt_notes.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "symbols/elf_file.h"
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

// Returns nullopt if the description is truncated. `base`: the address of .stapsdt.base.
std::optional<UsdtLocation> read_note(const ElfImage& image, std::optional<uint64_t> base,
                                      std::string_view description) {
  const size_t word_bytes = image.is_64bit() ? 8 : 4;
  ByteReader reader(description);
  UsdtLocation out;
  out.address = reader.take_le(word_bytes);
  const uint64_t linked_base = reader.take_le(word_bytes);
  uint64_t semaphore = reader.take_le(word_bytes);
  if (base && linked_base != 0) {
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

}  // namespace

std::vector<UsdtLocation> read_usdt(const ElfFile& file) {
  const ElfImage& image = file.image();
  const std::optional<uint64_t> base = image.section_address(".stapsdt.base");
  std::vector<UsdtLocation> out;
  ByteReader notes(image.section_bytes(".note.stapsdt"));
  while (!notes.at_end()) {
    const auto owner_bytes = notes.take_le<uint32_t>();
    const auto description_bytes = notes.take_le<uint32_t>();
    const auto type = notes.take_le<uint32_t>();
    const std::string_view owner = take_field(notes, owner_bytes);
    const std::string_view description = take_field(notes, description_bytes);
    if (type != kNoteType || owner != kOwner) continue;
    if (auto location = read_note(image, base, description)) out.push_back(std::move(*location));
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

std::optional<UsdtOperand> parse_usdt_operand(const kernel::Arch& arch, std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  UsdtOperand out;
  std::string_view size_text = text.substr(0, at);
  if (size_text.ends_with('f')) size_text.remove_suffix(1);
  const auto size = parse_int(size_text);
  const auto signed_bytes = size.value_or(0);
  const uint64_t bytes = signed_bytes < 0 ? -static_cast<uint64_t>(signed_bytes) : static_cast<uint64_t>(signed_bytes);
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return std::nullopt;
  out.size_bytes = static_cast<uint8_t>(bytes);
  out.is_signed = signed_bytes < 0;
  return arch.usdt.parse(trim(text.substr(at + 1)), out) ? std::optional(out) : std::nullopt;
}

}  // namespace espy::symbols
