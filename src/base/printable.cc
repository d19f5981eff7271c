#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace espy {

namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// The C1 controls; zero-width and bidirectional formatting; separators of lines; interlinear and tag characters.
constexpr Range kHidden[] = {{0x80, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},  {0x2028, 0x202e},
                             {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

// The character that the first `size` bytes of `text` encode.
uint32_t code_of(std::string_view text, size_t size) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (size == 1) return first;
  uint32_t code = first & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  return code;
}

bool holds(const Range& range, uint32_t code) { return code >= range.first && code <= range.last; }

// Returns the number of bytes of the character at the front that can be shown; 0 if it cannot.
size_t shown_bytes(std::string_view text, std::string_view blanks) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return (first >= 0x20 && first != 0x7f) || blanks.find(text[0]) != blanks.npos ? 1 : 0;
  const size_t size = utf8_length(text);
  if (size == 0) return 0;
  const uint32_t code = code_of(text, size);
  return std::ranges::any_of(kHidden, [&](const Range& range) { return holds(range, code); }) ? 0 : size;
}

// `blanks`: the control characters that stay.
std::string escaped(std::string_view text, std::string_view blanks) {
  std::string out;
  size_t shown = 0;  // of the front of `text`
  while (shown < text.size()) {
    const size_t next = shown_bytes(text.substr(shown), blanks);
    shown += next;
    if (next > 0) continue;
    out += fmt::format("{}\\x{:02x}", text.substr(0, shown), static_cast<unsigned char>(text[shown]));
    text.remove_prefix(shown + 1);
    shown = 0;
  }
  return out += text;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by size: else it is longer than it need be
  constexpr Range kSurrogates = {0xd800, 0xdfff};
  const uint32_t code = code_of(text, size);
  return code < kSmallest[size] || code > 0x10ffff || holds(kSurrogates, code) ? 0 : size;
}

bool looks_escaped(std::string_view text) {
  const auto is_digit = [&](size_t at) {
    return (text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f');
  };
  return text.size() >= 4 && text[0] == '\\' && text[1] == 'x' && is_digit(2) && is_digit(3);
}

std::string exact_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length > 0 && !looks_escaped(text))
      out += text.substr(0, length);
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string printable(std::string_view text) { return escaped(text, "\n\t"); }

std::string printable_line(std::string_view text) { return escaped(text, ""); }

}  // namespace espy
