#include "watch/columns.h"

#include <algorithm>
#include <cstdint>

#include "base/printable.h"

namespace espy::watch {

namespace {

struct Range {
  uint32_t first, last;
};

// The blocks whose characters combine with the one before. Single ones elsewhere are taken for narrow.
constexpr Range kCombining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
                                {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
                                {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
// The blocks of wide characters (East Asian Width W and F) and of pictures.
constexpr Range kWide[] = {{0x1100, 0x115f},  {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
                           {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                           {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                           {0x20000, 0x3fffd}};

// The character that `bytes`, a whole one, encode.
uint32_t code_of(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  uint32_t code = first & (0xffu >> (bytes.size() + 1));
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

size_t width_of(uint32_t code) {
  const auto holds = [code](const Range& range) { return code >= range.first && code <= range.last; };
  if (code < kCombining[0].first) return 1;
  return std::ranges::any_of(kCombining, holds) ? 0 : std::ranges::any_of(kWide, holds) ? 2 : 1;
}

// The part of a text that fits, and how many columns it takes.
struct Fitting {
  size_t bytes = 0, columns = 0;
};

Fitting fitting(std::string_view text, size_t columns) {
  Fitting out;
  while (out.bytes < text.size()) {
    const std::string_view rest = text.substr(out.bytes);
    const size_t size = std::max<size_t>(utf8_length(rest), 1);
    const size_t width = width_of(code_of(rest.substr(0, size)));
    if (out.columns + width > columns) break;
    out.bytes += size;
    out.columns += width;
  }
  return out;
}

}  // namespace

size_t columns_of(std::string_view text) { return fitting(text, SIZE_MAX).columns; }

std::string_view cut(std::string_view text, size_t columns) { return text.substr(0, fitting(text, columns).bytes); }

std::string left_aligned(std::string_view text, size_t columns) {
  const Fitting shown = fitting(text, columns);
  return std::string(text.substr(0, shown.bytes)).append(columns - shown.columns, ' ');
}

std::string right_aligned(std::string_view text, size_t columns) {
  const Fitting shown = fitting(text, columns);
  return std::string(columns - shown.columns, ' ').append(text.substr(0, shown.bytes));
}

}  // namespace espy::watch
